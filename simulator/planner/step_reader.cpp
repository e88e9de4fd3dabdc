#include "simulator/planner/step_reader.h"

#include <algorithm>

#include "core/base/stream.h"
#include "core/trace/trace.h"
#include "simulator/cost/price.h"
#include "simulator/planner/stream_ends.h"

namespace zl::sim {
namespace {

class StepReader {
 public:
  explicit StepReader(bool messages_apart) : ends_(messages_apart) {}

  StepFacts read(const RecordedStage& stage, const LateReductions& late) {
    std::size_t index = 0;
    for (const TraceEvent& event : stage.trace.trace->events()) {
      const EventTime time = stage.timeline->events[index++];
      if (late.defers(event)) continue;  // of the update's time
      const std::int64_t before = ends_.of(event.stream);
      ends_.follow(event, time);
      if (event.scope.step > kProfiledStep - 1 && is_pass(event)) {
        if (stream_of(event) != StreamId::compute || !takes_time(event)) continue;
        facts_.parts.back() = time.start - from_ - elsewhere_;
        break;
      }
      if (event.scope.step == kProfiledStep - 1) during(event, time, before);
    }
    return facts_;
  }

 private:
  static StreamId stream_of(const TraceEvent& event) { return static_cast<StreamId>(event.stream); }
  static bool is_pass(const TraceEvent& event) {
    return event.scope.micro >= 0 && event.scope.phase != Phase::other;
  }
  // Passes end when what goes to the host has.
  static bool ends_passes(StreamId stream) {
    return stream == StreamId::compute || stream == StreamId::copy_out || stream == StreamId::host;
  }
  // All ranks of a pipeline wait for each other there.
  static bool is_meeting(const TraceEvent& event) {
    return event.type == EventType::collective &&
           event.axis == static_cast<std::uint8_t>(Axis::pipeline);
  }

  void during(const TraceEvent& event, EventTime time, std::int64_t before) {
    if (is_pass(event)) {
      if (ends_passes(stream_of(event))) from_ = std::max(from_, ends_.of(event.stream));
    } else if (event.scope.phase != Phase::optimizer || stream_of(event) != StreamId::compute) {
      return;
    } else if (event.type == EventType::message) {
      elsewhere_ += ends_.of(event.stream) - std::max(before, from_);
      facts_.exchanged = std::max(facts_.exchanged, event.bytes_written);
    } else if (is_meeting(event) && part_ + 1 < kStepParts) {
      facts_.parts[part_++] = time.start - ends_.idle() - from_ - elsewhere_;
      from_ = time.start;
      elsewhere_ = 0;
    }
  }

  StepFacts facts_;
  StreamEnds ends_;
  std::size_t part_ = 0;
  std::int64_t from_ = 0;       // begin of the part
  std::int64_t elsewhere_ = 0;  // of it, in messages
};

}  // namespace

LateReductions late_reductions_of(const RecordedStage& stage) {
  const bool is_piped = stage.place != StagePlace::whole;
  if (!is_piped || !stage.cluster->device.software.reduces_last) return {};
  return {*stage.trace.trace, CostModel(*stage.cluster).overlap_loss()};
}

StepFacts read_step(const RecordedStage& stage, const LateReductions& late) {
  return StepReader(stage.cluster->device.software.message_stream).read(stage, late);
}

}  // namespace zl::sim
