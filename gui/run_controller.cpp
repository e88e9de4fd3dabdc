#include "gui/run_controller.h"

#include <algorithm>
#include <optional>

#include "scenarios/run/measure.h"
#include "scenarios/run/stored_run.h"

namespace zl::gui {

RunController::RunController(QObject* parent) : QObject(parent) {}

RunController::~RunController() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

QStringList RunController::backends() { return {"cpu", "cuda", "sim"}; }

void RunController::cancel() { stop_ = true; }

template <class Call>
void RunController::post(Call call) {
  QMetaObject::invokeMethod(this, std::move(call), Qt::QueuedConnection);
}

void RunController::start(const Scenario& scenario, const std::vector<std::string>& strategies,
                          const std::string& backend, const std::filesystem::path& database,
                          const KeptFiles& files) {
  if (running_) return;
  if (thread_.joinable()) thread_.join();
  Scenario chosen = scenario;
  chosen.strategies.clear();
  QStringList names;
  for (const ImportedStrategy& each : scenario.strategies) {
    if (std::find(strategies.begin(), strategies.end(), each.strategy.name) == strategies.end()) {
      continue;
    }
    chosen.strategies.push_back(each);
    names << QString::fromStdString(each.strategy.name);
  }
  running_ = true;
  real_ = backend != "sim";
  stop_ = false;
  Q_EMIT started(names, scenario.run.steps);
  const Batch batch{chosen, backend, database, files};
  thread_ = std::thread([this, batch] { work(batch); });
}

void RunController::work(const Batch& batch) {
  QString message;
  try {
    run_all(batch);
    if (stop_) message = tr("cancelled");
  } catch (const std::exception& error) {
    message = error.what();
  }
  post([this, message] {
    running_ = false;
    Q_EMIT finished(message);
  });
}

RunHooks RunController::hooks_of(const Batch& batch, int index, std::vector<double>& seconds) {
  const Strategy& strategy = batch.scenario.strategies[static_cast<std::size_t>(index)].strategy;
  const auto tokens = static_cast<double>(tokens_per_step(batch.scenario, strategy));
  RunHooks hooks;
  hooks.stop = &stop_;
  hooks.checkpoint = batch.files.checkpoint;
  if (!batch.files.models.empty()) {
    const bool alone = batch.scenario.strategies.size() == 1;
    hooks.save_weights_to = saved_to(batch.files.models, strategy.name, alone);
  }
  hooks.on_evaluation = [this, index](const EvaluationPoint& point, bool) {
    post([this, index, point] { Q_EMIT evaluated(index, point); });
  };
  hooks.on_step = [this, index, tokens, &seconds](std::int64_t step, const StepMetrics& metrics,
                                                  double took) {
    seconds.push_back(took);
    const double median = step_time_of(seconds).median;
    const RunProgress now{index,
                          step,
                          metrics.loss,
                          metrics.grad_norm,
                          metrics.lr,
                          median,
                          median > 0 ? tokens / median : 0,
                          metrics.peak_device};
    post([this, now] { Q_EMIT progressed(now); });
  };
  return hooks;
}

std::string RunController::saved_to(const std::string& folder, const std::string& strategy,
                                    bool alone) {
  return alone ? folder : (std::filesystem::path(folder) / strategy).string();
}

void RunController::run_all(const Batch& batch) {
  const Scenario& scenario = batch.scenario;
  const Runner runner;
  const BackendCapabilities& can = runner.backends().capabilities(batch.backend);
  std::optional<Store> store;
  if (!batch.database.empty()) store = Store::open(batch.database, Store::Mode::read_write);
  Environment environment = detect_environment();
  for (int index = 0; index < static_cast<int>(scenario.strategies.size()) && !stop_; ++index) {
    const ImportedStrategy& strategy = scenario.strategies[index];
    post([this, index] { Q_EMIT strategy_started(index); });
    std::vector<double> step_seconds;
    RunHooks hooks = hooks_of(batch, index, step_seconds);
    // What a recording reports for a step is not what the step will be.
    if (can.is_recording) {
      hooks.on_step = {};
      hooks.save_weights_to.clear();
      hooks.overflows = skipped_.of(scenario, strategy, store ? &*store : nullptr);
    }
    RunResult result = attempt_run(runner, scenario, strategy, batch.backend, hooks);
    skipped_.add(scenario, strategy, result);
    name_accelerator(can, environment);
    if (store) result.run_id = store_run(*store, scenario, strategy, result, environment);
    post([this, index, result] { Q_EMIT strategy_finished(index, result); });
  }
}

}  // namespace zl::gui
