#include "gui/sweep.h"

#include <chrono>

#include "core/base/error.h"
#include "scenarios/files/strategy_json.h"

namespace zl::gui {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenSignals = std::chrono::milliseconds(100);

Choices stage_axis(const Strategy& base) {
  Choices axis{{}};
  for (int stage = 0; stage <= 3; ++stage) {
    if (stage != base.zero.stage) axis.push_back(stage_change(base, stage));
  }
  return axis;
}

Choices recompute_axis(const Strategy& base) {
  Choices axis{{}};
  for (const char* mode : {"none", "auto", "full"}) {
    if (recompute_text(base.recompute) != mode) axis.push_back(recompute_change(base, mode));
  }
  return axis;
}

Choices batch_axis(const Strategy& base) {
  Choices axis{{}};
  for (std::int64_t batch = 1; batch <= 16; batch *= 2) {
    if (batch == base.micro_batch) continue;
    axis.push_back(batch_change(base, batch, base.gradient_accumulation));
  }
  return axis;
}

std::string offload_text(const Strategy& strategy) {
  if (!strategy.offload.any()) return "none";
  return strategy.offload.parameters == Tier::device ? "optimizer" : "optimizer and weights";
}

SweepRow row_of(Variation variation, const StrategyStudy& judged) {
  const Strategy& strategy = judged.imported.strategy;
  return {std::move(variation),
          strategy.zero.stage,
          recompute_text(strategy.recompute),
          strategy.micro_batch,
          offload_text(strategy),
          judged.fits(),
          judged.result.peak_device.total(),
          judged.result.step_time.median,
          judged.result.tokens_per_second};
}

}  // namespace

std::vector<Variation> sweep_variations(const Study& study, const StrategyStudy& strategy) {
  const Strategy& base = strategy.imported.strategy;
  Choices offload{{}};
  if (!base.offload.any()) offload = {{}, optimizer_to_host(), optimizer_and_weights_to_host()};
  return variations(study, strategy,
                    {stage_axis(base), recompute_axis(base), batch_axis(base), offload});
}

Sweep::~Sweep() { cancel(); }

void Sweep::cancel() {
  stop_ = true;
  ++ticket_;
  running_ = false;
  if (thread_.joinable()) thread_.join();
}

void Sweep::start(std::shared_ptr<const Study> study, const std::string& strategy) {
  cancel();
  stop_ = false;
  running_ = true;
  thread_ = std::thread([this, study = std::move(study), strategy, ticket = ticket_] {
    if (const StrategyStudy* found = study->find(strategy)) work(*study, *found, ticket);
  });
}

void Sweep::work(const Study& study, const StrategyStudy& strategy, int ticket) {
  const std::vector<Variation> all = sweep_variations(study, strategy);
  const int count = static_cast<int>(all.size()) + 1;
  std::vector<SweepRow> rows{row_of({strategy.name(), {}, {}}, strategy)};
  const auto send = [&] {
    QMetaObject::invokeMethod(
        this,
        [this, rows = std::move(rows), ticket, count] {
          if (ticket == ticket_) Q_EMIT found(rows, count);
        },
        Qt::QueuedConnection);
    rows.clear();
  };
  auto sent = Clock::now();
  for (const Variation& variation : all) {
    Evaluator evaluator;  // one at a time: a sweep's recordings together can be gigabytes
    try {
      const auto judged =
          evaluator.evaluate(study.document.with_strategies({variation.json}), stop_);
      if (stop_) return;
      rows.push_back(row_of(variation, judged->strategies.front()));
    } catch (const Error&) {
      continue;  // a combination that the scenario forbids
    }
    if (Clock::now() - sent < kBetweenSignals) continue;
    send();
    sent = Clock::now();
  }
  send();
  QMetaObject::invokeMethod(
      this,
      [this, ticket] {
        if (ticket != ticket_) return;
        running_ = false;
        Q_EMIT finished();
      },
      Qt::QueuedConnection);
}

}  // namespace zl::gui
