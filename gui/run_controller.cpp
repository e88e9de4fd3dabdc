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
                          const std::string& backend, const std::filesystem::path& database) {
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
  stop_ = false;
  Q_EMIT started(names, scenario.run.steps);
  thread_ = std::thread([this, chosen, backend, database] { work(chosen, backend, database); });
}

void RunController::work(Scenario scenario, std::string backend, std::filesystem::path database) {
  QString message;
  try {
    run_all(scenario, backend, database);
    if (stop_) message = tr("cancelled");
  } catch (const std::exception& error) {
    message = error.what();
  }
  post([this, message] {
    running_ = false;
    Q_EMIT finished(message);
  });
}

void RunController::run_all(const Scenario& scenario, const std::string& backend,
                            const std::filesystem::path& database) {
  const Runner runner;
  std::optional<Store> store;
  if (!database.empty()) store = Store::open(database, Store::Mode::read_write);
  Environment environment = detect_environment();
  for (int index = 0; index < static_cast<int>(scenario.strategies.size()) && !stop_; ++index) {
    const ImportedStrategy& strategy = scenario.strategies[index];
    const auto tokens = static_cast<double>(tokens_per_step(scenario, strategy.strategy));
    std::vector<double> step_seconds;
    RunHooks hooks;
    hooks.stop = &stop_;
    hooks.on_step = [&](std::int64_t step, const StepMetrics& metrics, double seconds) {
      step_seconds.push_back(seconds);
      const double median = step_time_of(step_seconds).median;
      const RunProgress now{
          index, step, metrics.loss, median, median > 0 ? tokens / median : 0, metrics.peak_device};
      post([this, now] { Q_EMIT progressed(now); });
    };
    RunResult result = attempt_run(runner, scenario, strategy, backend, hooks);
    name_accelerator(runner.backends().capabilities(backend), environment);
    if (store) result.run_id = store_run(*store, scenario, strategy, result, environment);
    post([this, index, result] { Q_EMIT strategy_finished(index, result); });
  }
}

}  // namespace zl::gui
