#include "scenarios/cli/plan_twin.h"

#include <array>

#include "core/base/log.h"
#include "results/run_tables.h"
#include "scenarios/cli/experiment.h"
#include "scenarios/cli/output.h"
#include "scenarios/planner/twin.h"
#include "scenarios/run/measure.h"

namespace zl::cli {

namespace {

// A prediction's books are of the fullest rank, a training's of rank 0: of the same one, side by
// side.
RunResult with_books(RunResult predicted, const RunResult& recorded) {
  predicted.peak_device = recorded.peak_device;
  predicted.peak_host = recorded.peak_host;
  predicted.peak_nvme = recorded.peak_nvme;
  predicted.reserved_device = recorded.reserved_device;
  predicted.wire_bytes_per_step = recorded.wire_bytes_per_step;
  predicted.rank = recorded.rank;
  return predicted;
}

}  // namespace

int train_twin(const Scenario& scenario, const ImportedStrategy& plan,
               const DatabaseOptions& database, Format format) {
  const Runner runner;
  Experiment experiment(runner, twin_of(scenario, plan), database);
  const Scenario& twin = experiment.scenario();
  const ImportedStrategy& strategy = twin.strategies.front();
  log_info(twin.name + ": " + std::to_string(twin.run.ranks) + " ranks train " +
           std::to_string(twin.run.steps) + " steps of " + twin.model.name);
  std::array<RunResult, 2> runs;
  runs[0] = experiment.run(strategy, "cpu", {});
  if (!experiment.interrupted()) runs[1] = experiment.run(strategy, "sim", {});
  for (const RunResult& run : runs) announce(run);
  if (const int code = experiment.exit_code(runs); code != 0) return code;
  const RunResult recorded = recorded_books(twin, overflowed_steps(runs[0]));
  runs[1] = with_books(runs[1], recorded);
  std::string text = "\nThe plan made small and trained here: " + setup_line(runs) + "\n" +
                     render(summary_table(runs), format);
  text += "\nPredicted against measured step time:\n" + render(prediction_table(runs), format);
  if (const std::string basis = basis_line(runs); !basis.empty()) text += basis + "\n";
  text += "\nWhat a rank held, sent and ran:\n" + render(books_table(runs[0], recorded), format);
  print(text);
  if (has_equal_books(runs[0], recorded)) return 0;
  print_error("the twin's training contradicts its recording; this is a defect of zerolab");
  return 1;
}

}  // namespace zl::cli
