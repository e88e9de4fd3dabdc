// Tables of published runs, and what scenario each row is.
#include "scenarios/published/published_run.h"

#include <vector>

#include "core/base/log.h"
#include "scenarios/files/scenario.h"
#include "tests/fuzz/fuzz.h"

ZL_FUZZ_TARGET(published) {
  zl::set_log_level(zl::LogLevel::quiet);
  std::vector<zl::PublishedRun> runs;
  zl::fuzz::takes([&] { runs = zl::read_published(zl::fuzz::text_of(data, size), "input.csv"); });
  int left = 3;
  for (const zl::PublishedRun& run : runs) {
    if (left-- == 0) break;
    const zl::Expressed expressed = zl::express(run);
    zl::fuzz::require(expressed.scenario.has_value() != !expressed.why_not.empty(),
                      "neither a scenario nor a reason");
  }
  return 0;
}
