// From what all ranks do, the instructions of one, with its messages.
#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/pipeline/pipeline_times.h"
#include "core/pipeline/schedule.h"

namespace zl {
namespace {

// A message as one of its two ranks sees it.
struct RankMessage {
  std::int64_t time = 0;  // when what it carries is made
  int stage = 0;          // that made it
  bool forward = false;
  int micro = 0;
  bool sends = false;

  // The order of all messages of all ranks.
  auto key() const { return std::tuple(time, stage, forward, micro); }
};

// What `work` of stage `made` sends on, if to another rank.
std::vector<RankMessage> messages_of(const Pipeline& pipeline, int rank) {
  const std::vector<StageCosts> units(pipeline.stages());
  const PipelineTimes times = time_pipeline(pipeline, units);
  std::vector<RankMessage> mine;
  for (int from = 0; from < pipeline.shape.ranks; ++from) {
    for (std::size_t i = 0; i < pipeline.work[from].size(); ++i) {
      const Work& work = pipeline.work[from][i];
      const bool forward = work.kind == WorkKind::forward;
      const int next = work.stage + (forward ? 1 : -1);
      if (next < 0 || next == pipeline.stages()) continue;
      const int to = pipeline.rank_of(next);
      if (to == from || (from != rank && to != rank)) continue;
      const std::int64_t end = times.ranks[from].start[i] + units[work.stage].of(work.kind);
      mine.push_back({end, work.stage, forward, work.micro, from == rank});
    }
  }
  std::ranges::sort(mine, {}, &RankMessage::key);
  return mine;
}

class Lowering {
 public:
  Lowering(const Pipeline& pipeline, int rank)
      : pipeline_(pipeline), messages_(messages_of(pipeline, rank)), unreleased_(kinds()) {
    const std::vector<StageCosts> units(pipeline.stages());
    const std::vector<std::int64_t> starts = time_pipeline(pipeline, units).ranks[rank].start;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      messages_until(starts[i]);
      perform(pipeline.work[rank][i]);
    }
    messages_until(INT64_MAX);
    for (std::size_t i = 0; i < unreleased_.size(); ++i) {
      while (!unreleased_[i].empty()) release(i);
    }
  }

  std::vector<Instruction> take() { return std::move(body_); }

 private:
  static constexpr std::size_t kUnreleased = 2;

  // Sends of each chunk, forward and back.
  std::size_t kinds() const { return 2 * static_cast<std::size_t>(pipeline_.shape.chunks); }

  void messages_until(std::int64_t time) {
    for (; next_ < messages_.size() && messages_[next_].time <= time; ++next_) {
      const RankMessage& message = messages_[next_];
      if (message.sends) {
        send(message);
        continue;
      }
      const int stage = message.stage + (message.forward ? 1 : -1);
      body_.push_back(
          {message.forward ? InstructionKind::receive_stream : InstructionKind::receive_gradient,
           message.micro, pipeline_.chunk_of(stage)});
    }
  }

  void send(const RankMessage& message) {
    const int chunk = pipeline_.chunk_of(message.stage);
    const std::size_t kind = static_cast<std::size_t>(chunk) * 2 + (message.forward ? 1 : 0);
    if (unreleased_[kind].size() == kUnreleased) release(kind);
    body_.push_back(
        {message.forward ? InstructionKind::send_stream : InstructionKind::send_gradient,
         message.micro, chunk});
    unreleased_[kind].push_back(message.micro);
  }

  void release(std::size_t kind) {
    body_.push_back(
        {kind % 2 == 1 ? InstructionKind::release_stream : InstructionKind::release_gradient,
         unreleased_[kind].front(), static_cast<int>(kind / 2)});
    unreleased_[kind].pop_front();
  }

  void perform(const Work& work) {
    const int chunk = pipeline_.chunk_of(work.stage);
    const bool takes_ids = work.stage == 0 || work.stage == pipeline_.stages() - 1;
    const bool forward = work.kind == WorkKind::forward;
    if (forward && takes_ids) body_.push_back({InstructionKind::load, work.micro, chunk});
    body_.push_back(
        {forward ? InstructionKind::forward : InstructionKind::backward, work.micro, chunk});
  }

  const Pipeline& pipeline_;
  std::vector<RankMessage> messages_;
  std::size_t next_ = 0;
  std::vector<std::deque<int>> unreleased_;  // micro-batches, in the order of their sends
  std::vector<Instruction> body_;
};

}  // namespace

Schedule pipeline_schedule(const Pipeline& pipeline, int rank) {
  if (splits_backward(pipeline.kind)) {
    throw Error(ErrorCode::invalid,
                std::string("parallel.schedule: ") + name_of(pipeline.kind) +
                    " runs backwards in halves, which training does not do yet; use 1f1b, gpipe, "
                    "breadth-first or interleaved");
  }
  return {.body = Lowering(pipeline, rank).take(),
          .micro_batches = pipeline.shape.micro_batches,
          .repeats = 1};
}

}  // namespace zl
