// The steps of fp16 whose update executed runs skipped, for the recordings that are compared with
// them: a recording knows no gradient that overflows.
// Ownership: values. Threads: used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/store.h"
#include "scenarios/files/scenario.h"

namespace zl {

class SkippedSteps {
 public:
  // After a run of the scenario with that strategy; what is predicted is passed over.
  void add(const Scenario& scenario, const ImportedStrategy& strategy, const RunResult& run);

  // RunHooks::overflows of a recording: those of the newest executed run of the same scenario and
  // strategy that was added here, else that is stored (null: nowhere). Empty where none was, and of
  // other precisions.
  std::vector<std::int64_t> of(const Scenario& scenario, const ImportedStrategy& strategy,
                               Store* store) const;

 private:
  std::map<std::string, std::vector<std::int64_t>> added_;  // by content_hash()
};

}  // namespace zl
