#include "scenarios/planner/sweep.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/pipeline/pipeline.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/evaluator.h"

namespace zl {
namespace {

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
          strategy.tensor.ranks,
          strategy.pipeline.ranks,
          strategy.pipeline.ranks > 1 ? name_of(strategy.pipeline.schedule) : "none",
          offload_text(strategy),
          zl::fits(judged.result),
          judged.result.peak_device.total(),
          judged.reserved(),
          judged.result.step_time.median,
          judged.result.tokens_per_second};
}

}  // namespace

std::vector<Variation> sweep_variations(const Study& study, const StrategyStudy& strategy) {
  const Strategy& base = strategy.imported.strategy;
  Choices offload{{}};
  if (!base.offload.any()) offload = {{}, optimizer_to_host(), optimizer_and_weights_to_host()};
  std::vector<Variation> all = variations(
      study, strategy, {stage_axis(base), recompute_axis(base), batch_axis(base), offload});
  std::ranges::move(variations(study, strategy,
                               {stage_axis(base), recompute_axis(base), mesh_changes(study, base)}),
                    std::back_inserter(all));
  std::ranges::move(variations(study, strategy, {schedule_changes(study, base)}),
                    std::back_inserter(all));
  return all;
}

void sweep(const Study& study, const StrategyStudy& strategy,
           const std::vector<Variation>& variations, const std::atomic<bool>& cancelled,
           const std::function<void(SweepRow)>& found) {
  found(row_of({strategy.name(), {}, {}}, strategy));
  for (const Variation& variation : variations) {
    Evaluator evaluator;  // one at a time: a sweep's recordings together can be gigabytes
    try {
      const auto judged =
          evaluator.evaluate(study.document.with_strategies({variation.json}), cancelled);
      if (!judged) return;
      found(row_of(variation, judged->strategies.front()));
    } catch (const Error&) {
      continue;  // a combination that the scenario forbids
    }
  }
}

}  // namespace zl
