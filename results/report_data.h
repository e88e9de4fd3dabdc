// What a report says, as plain data: what was run and predicted, and on which machines.
// Ownership: values. Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/train/run_result.h"
#include "results/environment.h"
#include "results/svg.h"

namespace zl {

struct ReportRun {
  RunResult result;  // run_id set
  std::string saved_at;
  std::string scenario_hash;  // runs with the same one are the same scenario and strategy
  std::int64_t needed = 0;    // device bytes without a limit, of a run that did not fit; 0: unknown
};

// One simulated step of a strategy, as the timeline shows it.
struct ReportStep {
  std::string strategy;
  double seconds = 0;
  std::vector<ChartLane> lanes;  // a span's series is its Phase
  std::string problem;           // why there is none
};

// Runs that differ in nothing but the strategy and the backend.
struct ReportScenario {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // model, cluster, ranks, ...
  std::int64_t capacity = 0;                               // device bytes of a rank; 0: unlimited
  std::vector<ReportRun> runs;                             // by strategy, then backend
  std::vector<ReportStep> steps;                           // one per strategy
};

struct ReportEnvironment {
  Environment environment;
  std::vector<std::int64_t> runs;
  std::string first, last;  // saved_at
};

struct Report {
  std::string database;
  std::string written_at;  // UTC, ISO 8601
  std::string written_by;
  std::vector<ReportScenario> scenarios;
  std::vector<ReportEnvironment> environments;
};

// Seconds of the median step that its named parts leave: waiting for the host.
double host_seconds(const RunResult& run);

}  // namespace zl
