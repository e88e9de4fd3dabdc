// From what all ranks do, the instructions of each, with its messages.
#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <tuple>
#include <vector>

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

// Of each rank, in the order of all.
std::vector<std::vector<RankMessage>> messages_of(const Pipeline& pipeline,
                                                  const PipelineTimes& times,
                                                  std::span<const StageCosts> units) {
  std::vector<std::vector<RankMessage>> messages(pipeline.work.size());
  for (int from = 0; from < pipeline.shape.ranks; ++from) {
    for (std::size_t i = 0; i < pipeline.work[from].size(); ++i) {
      const Work& work = pipeline.work[from][i];
      if (work.kind == WorkKind::weight_gradient) continue;
      const bool forward = work.kind == WorkKind::forward;
      const int next = work.stage + (forward ? 1 : -1);
      if (next < 0 || next == pipeline.stages()) continue;
      const int to = pipeline.rank_of(next);
      if (to == from) continue;
      const std::int64_t end = times.ranks[from].start[i] + units[work.stage].of(work.kind);
      messages[from].push_back({end, work.stage, forward, work.micro, true});
      messages[to].push_back({end, work.stage, forward, work.micro, false});
    }
  }
  for (auto& each : messages) std::ranges::sort(each, {}, &RankMessage::key);
  return messages;
}

InstructionKind kind_of(WorkKind kind) {
  constexpr std::array kKinds{InstructionKind::forward, InstructionKind::backward,
                              InstructionKind::input_gradient, InstructionKind::weight_gradient};
  return kKinds[static_cast<std::size_t>(kind)];
}

class Lowering {
 public:
  // starts: of the rank's list.
  Lowering(const Pipeline& pipeline, int rank, std::span<const std::int64_t> starts,
           std::span<const RankMessage> messages)
      : pipeline_(pipeline), messages_(messages), unreleased_(kinds()) {
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
    if (work.kind == WorkKind::forward && takes_ids) {
      body_.push_back({InstructionKind::load, work.micro, chunk});
    }
    body_.push_back({kind_of(work.kind), work.micro, chunk});
  }

  const Pipeline& pipeline_;
  std::span<const RankMessage> messages_;
  std::size_t next_ = 0;
  std::vector<std::deque<int>> unreleased_;  // micro-batches, in the order of their sends
  std::vector<Instruction> body_;
};

}  // namespace

std::vector<Schedule> pipeline_schedules(const Pipeline& pipeline) {
  const std::vector<StageCosts> units(pipeline.stages());
  const PipelineTimes times = time_pipeline(pipeline, units);
  const auto messages = messages_of(pipeline, times, units);
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < pipeline.shape.ranks; ++rank) {
    schedules.push_back(
        {.body = Lowering(pipeline, rank, times.ranks[rank].start, messages[rank]).take(),
         .micro_batches = pipeline.shape.micro_batches,
         .repeats = 1});
  }
  return schedules;
}

}  // namespace zl
