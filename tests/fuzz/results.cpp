// What `zerolab run -o json` writes, as `compare` reads it.
#include <nlohmann/json.hpp>

#include "results/compare.h"
#include "scenarios/cli/run_file.h"
#include "tests/fuzz/fuzz.h"

ZL_FUZZ_TARGET(results) {
  const std::string path = zl::fuzz::files().write("results.json", zl::fuzz::text_of(data, size));
  zl::fuzz::takes([&] {
    const std::vector<zl::RunResult> runs = zl::cli::read_run_file(path);
    if (!runs.empty()) zl::compare(runs.front(), runs.back());
  });
  return 0;
}
