#include "core/pipeline/pipeline_times.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"

namespace zl {
namespace {

constexpr std::int64_t kNotYet = -1;

// How far each micro-batch is: when its forward, its input's and its weights' gradient of each
// stage ended.
class Ends {
 public:
  Ends(int stages, int micros)
      : micros_(micros), forward_(static_cast<std::size_t>(stages) * micros, kNotYet) {
    gradient_ = forward_;
  }
  std::int64_t& forward(int stage, int micro) { return forward_[index(stage, micro)]; }
  std::int64_t& gradient(int stage, int micro) { return gradient_[index(stage, micro)]; }

 private:
  std::size_t index(int stage, int micro) const {
    return static_cast<std::size_t>(stage) * micros_ + micro;
  }

  int micros_;
  std::vector<std::int64_t> forward_, gradient_;
};

class Timer {
 public:
  Timer(const Pipeline& pipeline, std::span<const StageCosts> costs, std::int64_t message)
      : pipeline_(pipeline),
        costs_(costs),
        message_(message),
        ends_(pipeline.stages(), pipeline.shape.micro_batches),
        times_{.ranks = std::vector<PipelineTimes::Rank>(pipeline.work.size())} {}

  PipelineTimes run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < pipeline_.work.size(); ++rank) {
        while (advance(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < pipeline_.work.size(); ++rank) {
      if (next(rank) < pipeline_.work[rank].size()) refuse_deadlock();
      times_.makespan = std::max(times_.makespan, times_.ranks[rank].end);
      hold(rank);
    }
    return std::move(times_);
  }

 private:
  std::size_t next(std::size_t rank) const { return times_.ranks[rank].start.size(); }

  // The next of the rank's list with what is overlapped with it.
  std::span<const Work> next_work(std::size_t rank) const {
    const std::vector<Work>& list = pipeline_.work[rank];
    std::size_t last = next(rank);
    while (last < list.size() && list[last].with_next) ++last;
    return std::span(list).subspan(next(rank), std::min(last + 1, list.size()) - next(rank));
  }

  bool advance(std::size_t rank) {
    const std::span<const Work> all = next_work(rank);
    if (all.empty()) return false;
    PipelineTimes::Rank& mine = times_.ranks[rank];
    std::int64_t start = mine.end, length = 0;
    for (const Work& work : all) {
      const std::optional<std::int64_t> ready = ready_at(work);
      if (!ready) return false;
      start = std::max(start, *ready);
      length += costs_[work.stage].of(work.kind);
    }
    mine.start.insert(mine.start.end(), all.size(), start);
    mine.end = start + length;
    mine.busy += length;
    for (const Work& work : all) finish(work, mine.end);
    return true;
  }

  void finish(const Work& work, std::int64_t end) {
    if (work.kind == WorkKind::forward) ends_.forward(work.stage, work.micro) = end;
    if (work.kind == WorkKind::backward || work.kind == WorkKind::input_gradient) {
      ends_.gradient(work.stage, work.micro) = end;
    }
  }

  // When what it needs has arrived; nothing: not yet known.
  std::optional<std::int64_t> ready_at(const Work& work) {
    const int stage = work.stage, last = pipeline_.stages() - 1;
    switch (work.kind) {
      case WorkKind::forward:
        if (stage == 0) return 0;
        return arrival(ends_.forward(stage - 1, work.micro), stage - 1, stage);
      case WorkKind::weight_gradient:
        return arrival(ends_.gradient(stage, work.micro), stage, stage);
      default: {
        const auto own = arrival(ends_.forward(stage, work.micro), stage, stage);
        if (!own || stage == last) return own;
        const auto above = arrival(ends_.gradient(stage + 1, work.micro), stage + 1, stage);
        return above ? std::optional(std::max(*own, *above)) : std::nullopt;
      }
    }
  }

  std::optional<std::int64_t> arrival(std::int64_t end, int from, int to) const {
    if (end == kNotYet) return std::nullopt;
    return pipeline_.rank_of(from) == pipeline_.rank_of(to) ? end : end + message_;
  }

  void hold(std::size_t rank) {
    PipelineTimes::Rank& mine = times_.ranks[rank];
    int input = 0, weights = 0;
    for (const Work& work : pipeline_.work[rank]) {
      const bool forward = work.kind == WorkKind::forward;
      input += forward ? 1 : work.kind == WorkKind::weight_gradient ? 0 : -1;
      weights += forward ? 1 : work.kind == WorkKind::input_gradient ? 0 : -1;
      mine.held_until_input_gradient = std::max(mine.held_until_input_gradient, input);
      mine.held_until_weight_gradient = std::max(mine.held_until_weight_gradient, weights);
    }
  }

  [[noreturn]] void refuse_deadlock() const {
    std::string waits;
    for (std::size_t rank = 0; rank < pipeline_.work.size(); ++rank) {
      const std::span<const Work> all = next_work(rank);
      if (all.empty()) continue;
      waits += (waits.empty() ? "rank " : ", rank ") + std::to_string(rank) + " at " +
               describe(all.front());
    }
    throw Error(ErrorCode::infeasible, std::string("parallel.schedule: ") +
                                           name_of(pipeline_.kind) +
                                           " deadlocks: each waits for another: " + waits);
  }

  static std::string describe(const Work& work) {
    constexpr std::array<const char*, 4> kNames{"forward", "backward", "input gradient",
                                                "weight gradient"};
    return std::string(kNames[static_cast<std::size_t>(work.kind)]) + " of micro-batch " +
           std::to_string(work.micro) + " in stage " + std::to_string(work.stage);
  }

  const Pipeline& pipeline_;
  std::span<const StageCosts> costs_;
  std::int64_t message_;
  Ends ends_;
  PipelineTimes times_;
};

}  // namespace

std::int64_t StageCosts::of(WorkKind kind) const {
  switch (kind) {
    case WorkKind::forward:
      return forward;
    case WorkKind::backward:
      return input_gradient + weight_gradient;
    case WorkKind::input_gradient:
      return input_gradient;
    case WorkKind::weight_gradient:
      return weight_gradient;
  }
  return 0;
}

PipelineTimes time_pipeline(const Pipeline& pipeline, std::span<const StageCosts> costs,
                            std::int64_t message) {
  ZL_CHECK(static_cast<int>(costs.size()) == pipeline.stages(), "costs of each stage");
  return Timer(pipeline, costs, message).run();
}

}  // namespace zl
