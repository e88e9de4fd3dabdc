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

// One thing as well: what its file says beside what it means, and values as long as a page.
TEST(Width, WhatIsShownFitsTheTerminal) {
  const Home home;
  const std::string strategy = home.file("strategy.json", R"({"zero_optimization": {"stage": 3,
      "stage3_prefetch_bucket_size": 1e7}, "steps_per_print": 10, "no_such_key": 3})");
  setenv("COLUMNS", "120", 1);
  const std::vector<std::vector<std::string>> all = {{"strategy", strategy, "--ranks", "8"},
                                                     {"software", "torch-fsdp2"},
                                                     {"model", "llama3-8b"},
                                                     {"scenario", data_file("tiny.json")}};
  for (std::vector<std::string> arguments : all) {
    arguments.insert(arguments.begin(), "show");
    const Output narrow = zerolab(home, arguments);
    ASSERT_EQ(narrow.code, 0) << narrow.err;
    std::istringstream lines(narrow.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(text_width(line), 120u) << line;
    if (arguments[1] == "strategy") {
      EXPECT_CONTAINS(narrow.out, "no effect: every st");
    }
    arguments.insert(arguments.end(), {"-o", "wide"});
    EXPECT_GE(zerolab(home, arguments).out.size(), narrow.out.size());
  }
  unsetenv("COLUMNS");
}

}  // namespace
}  // namespace zl::cli_test
