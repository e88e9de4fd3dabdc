// Tables in a narrow terminal.
#include <sstream>

#include "results/format.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

TEST(Width, TablesFitTheTerminal) {
  const Home home;
  setenv("COLUMNS", "80", 1);
  const std::vector<std::string> run{"run", "llama3-8b", "--cluster", "8xh100", "--no-db"};
  const Output narrow = zerolab(home, run);
  std::vector<std::string> wide = run;
  wide.insert(wide.end(), {"-o", "wide"});
  const Output everything = zerolab(home, wide);
  unsetenv("COLUMNS");
  std::istringstream lines(narrow.out);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("zero-") && !line.starts_with("strategy")) continue;
    EXPECT_LE(line.size(), 80u) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 6 + 5) << "this core's and the software's, which has no zero-1";
  EXPECT_CONTAINS(narrow.out, "MFU");
  EXPECT_CONTAINS(narrow.out, "headroom");
  EXPECT_CONTAINS(narrow.out, "Not known of zero-1: ZeRO stage 1");
  EXPECT_CONTAINS(everything.out, "wire/step");
}

TEST(Width, ListsFitTheTerminal) {
  const Home home;
  setenv("COLUMNS", "80", 1);
  for (const char* list : {"models", "clusters", "software", "strategies", "studies"}) {
    const Output narrow = zerolab(home, {"show", list});
    std::istringstream lines(narrow.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(text_width(line), 80u) << line;
    const Output everything = zerolab(home, {"show", list, "-o", "wide"});
    EXPECT_EQ(everything.out == narrow.out, narrow.err.empty()) << list << ": " << narrow.err;
  }
  const Output studies = zerolab(home, {"show", "studies"});
  EXPECT_CONTAINS(studies.out, "Tang et al. 2021") << "a whole sentence";
  EXPECT_CONTAINS(studies.err, "left out: model, cluster");
  const Output strategies = zerolab(home, {"show", "strategies"});
  unsetenv("COLUMNS");
  EXPECT_CONTAINS(strategies.out, "Data parallelism: every rank holds");
}

}  // namespace
}  // namespace zl::cli_test
