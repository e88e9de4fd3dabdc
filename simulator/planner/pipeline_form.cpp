#include "simulator/planner/pipeline_form.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace zl::sim {
namespace {

// Beyond so many for each rank a schedule repeats itself, for each round of a micro-batch a rank.
constexpr std::int64_t kSteadyAfter = 4;

struct Counter {
  std::vector<std::int32_t> held;  // two a chunk
  std::int32_t messages = 0;
};

void count_held(const Instruction& each, Counter& counter) {
  std::int32_t* own = &counter.held[2 * static_cast<std::size_t>(each.chunk)];
  switch (each.kind) {
    case InstructionKind::forward:
      ++own[0];
      break;
    case InstructionKind::backward:
      --own[0];
      break;
    case InstructionKind::input_gradient:
      --own[0];
      ++own[1];
      break;
    case InstructionKind::weight_gradient:
      --own[1];
      break;
    case InstructionKind::receive_stream:
    case InstructionKind::receive_gradient:
      ++counter.messages;
      break;
    case InstructionKind::release_stream:
    case InstructionKind::release_gradient:
      --counter.messages;
      break;
    default:
      break;
  }
}

// What of a list comes to weights: a forward, or what begins a backward.
bool visits(const std::optional<StagePass>& pass) { return pass && !is_weight(*pass); }

// After each instruction of the body, what comes to weights next.
std::vector<NextPass> next_passes(const Schedule& schedule,
                                  const std::vector<std::optional<StagePass>>& passes,
                                  const std::vector<int>& stages) {
  std::vector<NextPass> after(schedule.body.size());
  NextPass coming;
  for (std::size_t i = schedule.body.size(); i-- > 0;) {
    after[i] = coming;
    if (!visits(passes[i])) continue;
    const auto chunk = static_cast<std::size_t>(schedule.body[i].chunk);
    coming = {stages[chunk], *passes[i] == StagePass::forward, NextPass::Unit::other};
  }
  NextPass before;
  for (std::size_t i = 0; i < schedule.body.size(); ++i) {
    if (visits(passes[i])) {
      const auto chunk = static_cast<std::size_t>(schedule.body[i].chunk);
      before = {stages[chunk], *passes[i] == StagePass::forward, NextPass::Unit::other};
    }
    if (before.stage < 0 || after[i].stage < 0) {
      after[i] = {};  // nothing is brought before the first and after the last
    } else {
      after[i] = next_pass(before.stage, before.forward, after[i].stage, after[i].forward);
    }
  }
  return after;
}

using MomentKey = std::vector<std::int32_t>;

MomentKey key_of(const Counter& now, const std::optional<StagePass>& pass, int chunk,
                 const NextPass& next) {
  MomentKey key = now.held;
  for (const std::int32_t each :
       {now.messages, pass ? static_cast<std::int32_t>(*pass) : -1, std::int32_t{chunk}, next.stage,
        static_cast<std::int32_t>(next.forward), static_cast<std::int32_t>(next.unit)}) {
    key.push_back(each);
  }
  return key;
}

PipelineForm::Rank moments_of(const Schedule& schedule, std::vector<int> stages, bool halves) {
  PipelineForm::Rank rank;
  const auto chunks = static_cast<int>(stages.size());
  PassReader reader(chunks, schedule.micro_batches, halves);
  std::vector<std::optional<StagePass>> passes;
  for (const Instruction& each : schedule.body) passes.push_back(reader.next(each));
  const std::vector<NextPass> next = next_passes(schedule, passes, stages);
  std::set<MomentKey> known;
  Counter now{std::vector<std::int32_t>(2 * stages.size()), 0};
  for (std::size_t i = 0; i < schedule.body.size(); ++i) {
    const Instruction& each = schedule.body[i];
    const auto& pass = passes[i];
    if (!pass) count_held(each, now);
    if (known.insert(key_of(now, pass, each.chunk, next[i])).second) {
      rank.moments.push_back({pass.value_or(StagePass::forward), pass.has_value(), each.chunk,
                              now.messages, next[i], rank.counts.size()});
      rank.counts.insert(rank.counts.end(), now.held.begin(), now.held.end());
    }
    if (pass) count_held(each, now);
  }
  for (int chunk = 0; chunk < chunks; ++chunk) rank.in_flight.push_back(schedule.in_flight(chunk));
  rank.stages = std::move(stages);
  return rank;
}

}  // namespace

// GPipe and breadth-first hold as many micro-batches as there are.
SteadyCount steady_count(PipelineKind kind, std::int64_t micro_batches, std::int64_t ranks) {
  const bool holds_all = kind == PipelineKind::gpipe || kind == PipelineKind::breadth_first;
  if (holds_all || micro_batches <= (kSteadyAfter + 1) * ranks) return {micro_batches, 0};
  const std::int64_t few = kSteadyAfter * ranks + micro_batches % ranks;
  return {few, micro_batches - few};
}

PipelineForm::PipelineForm(const PipelineConfig& config, std::int64_t micro_batches)
    : PipelineForm(*plan_pipeline(config, micro_batches)) {}

PipelineForm::PipelineForm(const PipelinePlan& plan) : order_(plan) {
  const Pipeline& pipeline = plan.pipeline;
  for (int rank = 0; rank < pipeline.shape.ranks; ++rank) {
    std::vector<int> stages;
    for (int chunk = 0; chunk < pipeline.shape.chunks; ++chunk) {
      stages.push_back(pipeline.stage_of(rank, chunk));
    }
    ranks_.push_back(moments_of(plan.schedules[static_cast<std::size_t>(rank)], std::move(stages),
                                splits_backward(pipeline.kind)));
  }
}

}  // namespace zl::sim
