#include "simulator/planner/pipeline_form.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace zl::sim {
namespace {

// Beyond so many for each rank a schedule repeats itself, for each round of a micro-batch a rank.
constexpr std::int64_t kSteadyAfter = 4;

// GPipe and breadth-first hold as many micro-batches as there are.
std::int64_t steady_count(PipelineKind kind, std::int64_t micro_batches, std::int64_t ranks) {
  if (kind == PipelineKind::gpipe || kind == PipelineKind::breadth_first) return micro_batches;
  if (micro_batches <= (kSteadyAfter + 1) * ranks) return micro_batches;
  return kSteadyAfter * ranks + micro_batches % ranks;
}

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

PipelineForm::Rank moments_of(const Schedule& schedule, int chunks, bool halves) {
  PipelineForm::Rank rank;
  PassReader passes(chunks, schedule.micro_batches, halves);
  std::set<std::vector<std::int32_t>> known;
  Counter now{std::vector<std::int32_t>(2 * static_cast<std::size_t>(chunks)), 0};
  for (const Instruction& each : schedule.body) {
    const auto pass = passes.next(each);
    if (!pass) count_held(each, now);
    std::vector<std::int32_t> key = now.held;
    key.push_back(now.messages);
    key.push_back(pass ? static_cast<std::int32_t>(*pass) : -1);
    key.push_back(each.chunk);
    if (known.insert(std::move(key)).second) {
      rank.moments.push_back({pass.value_or(StagePass::forward), pass.has_value(), each.chunk,
                              now.messages, rank.counts.size()});
      rank.counts.insert(rank.counts.end(), now.held.begin(), now.held.end());
    }
    if (pass) count_held(each, now);
  }
  for (int chunk = 0; chunk < chunks; ++chunk) rank.in_flight.push_back(schedule.in_flight(chunk));
  return rank;
}

}  // namespace

PipelineForm::PipelineForm(const PipelineConfig& config, std::int64_t micro_batches)
    : PipelineForm(
          *plan_pipeline(config, steady_count(config.schedule, micro_batches, config.ranks)),
          micro_batches - steady_count(config.schedule, micro_batches, config.ranks)) {}

PipelineForm::PipelineForm(const PipelinePlan& plan, std::int64_t left_out)
    : order_(plan), left_out_(left_out) {
  const Pipeline& pipeline = plan.pipeline;
  for (int rank = 0; rank < pipeline.shape.ranks; ++rank) {
    ranks_.push_back(moments_of(plan.schedules[static_cast<std::size_t>(rank)],
                                pipeline.shape.chunks, splits_backward(pipeline.kind)));
    for (int chunk = 0; chunk < pipeline.shape.chunks; ++chunk) {
      ranks_.back().stages.push_back(pipeline.stage_of(rank, chunk));
    }
  }
}

}  // namespace zl::sim
