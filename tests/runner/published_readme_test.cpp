// The first page's figures of published runs are those of today's code: what it should show is
// printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "results/format.h"
#include "scenarios/files/catalog.h"
#include "scenarios/published/validate.h"

namespace zl {
namespace {

std::vector<Cell> errors_row(const std::string& what, const Accuracy& all, const Errors& errors) {
  return {what, all.rows, errors.mape, errors.bias, errors.p95, errors.inside};
}

Table published_table() {
  std::vector<PublishedRun> runs = catalog_published();
  std::erase_if(runs, [](const PublishedRun& run) { return run.kind != TimeKind::measured; });
  const std::vector<Judged> times = judge_published(runs), bytes = judge_published_memory(runs);
  const Accuracy steps = accuracy_of_kind(times, TimeKind::measured);
  std::vector<const Judged*> predicted;
  for (const Judged& each : bytes) {
    if (each.is_predicted()) predicted.push_back(&each);
  }
  const Accuracy peaks = accuracy_of(predicted);
  Table table{{{"published", Align::left},
               {"runs"},
               {"mean error", Align::right, Unit::fraction},
               {"bias", Align::right, Unit::fraction},
               {"p95", Align::right, Unit::fraction},
               {"inside its bar", Align::right, Unit::fraction}},
              {}};
  table.rows = {errors_row("step", steps, steps),
                errors_row("step, its source left out of the fit", steps, steps.left_out.value()),
                errors_row("peak memory", peaks, peaks)};
  return table;
}

TEST(Published, TheFirstPageShowsTheseFigures) {
  const std::string shown = render(published_table(), Format::md);
  std::printf("%s", shown.c_str());
  std::stringstream readme;
  readme << std::ifstream(ZL_SOURCE_DIR "/README.md").rdbuf();
  EXPECT_NE(readme.str().find(shown), std::string::npos) << shown;
}

}  // namespace
}  // namespace zl
