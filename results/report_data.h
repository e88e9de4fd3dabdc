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
  std::int64_t needed = 0;    // device bytes that its pools reserve without a limit, of a run that
                              // did not fit; 0: unknown
  std::int64_t capacity = 0;  // device bytes of a rank; 0: the scenario's
  std::string name = {};      // of its strategy, and what tells it from others; empty: just that
  std::string tags = {};
  std::string beside_fastest = {};  // of a prediction: its step beside the shortest like it
  std::vector<std::pair<std::string, std::string>> facts = {};  // that not all of the scenario have
};

// "zero-2 (bf16)"; "zero-2 (bf16), sim".
std::string name_of(const ReportRun& run);
std::string run_label(const ReportRun& run);

// One simulated step of a strategy, as the timeline shows it.
struct ReportStep {
  std::string strategy;
  double seconds = 0;
  std::vector<ChartLane> lanes;  // a span's series is its Phase
  std::string problem;           // why there is none
  Table longest = {};            // its work, the longest first
  Table levers = {};             // what twice as much of one thing would do
};

// Runs side by side: of one scenario they differ in the strategy, the backend, and the software
// that is simulated; chosen ones in anything.
struct ReportScenario {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // that all have: model, cluster, ...
  std::int64_t capacity = 0;                               // device bytes of a rank; 0: unlimited
  std::vector<ReportRun> runs;                             // by strategy, then backend
  std::vector<ReportStep> steps;                           // one per strategy
};

// A heading, text, a chart and a table.
struct ReportPart {
  std::string heading;  // of the part, or of one chart and table within it
  std::string text;
  std::string svg;        // empty: no chart
  Table table;            // no columns: none
  std::string code = {};  // lines as they stand, such as those of a file
};

struct ReportSection {
  std::string title;
  std::vector<ReportPart> parts;
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
  ReportSection published = {};  // no parts: no predictions of published runs are stored
};

// Seconds of the median step that its named parts leave: waiting for the host.
double host_seconds(const RunResult& run);

}  // namespace zl
