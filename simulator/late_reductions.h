// Reductions that nobody waits for before the update, where gradients are reduced when all passes
// have ended (reduces_last): on the compute stream they run after work which follows them in the
// trace, on the communication stream (overlap_comm) beside it.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "core/base/stream.h"
#include "core/trace/trace.h"
#include "simulator/timeline.h"

namespace zl::sim {

// A reduction of gradients on the compute stream: no other is late.
bool may_be_late(const TraceEvent& event);

// Their indices in the trace.
std::set<std::size_t> late_reductions(const Trace& trace, const std::vector<EventTime>& times);

// The stream of messages between the stages where they have one of their own (message_stream).
inline constexpr std::size_t kMessageStream = kStreams;
inline constexpr std::size_t kStreamsWithMessages = kStreams + 1;
// A message of a pass, or what orders it on its stream.
bool is_of_message(const TraceEvent& event);

// What a pipeline's rank does with its reductions under such software.
class LateReductions {
 public:
  LateReductions() = default;  // of any other: nothing
  LateReductions(const Trace& trace, double overlap_loss);

  // Runs when all passes have ended: on the compute stream, and where overlap hides nothing.
  bool defers(const TraceEvent& event) const;
  // Waits for reductions beside the passes, as no pass does.
  bool ignores(const TraceEvent& wait) const;
  bool are_beside() const { return !records_.empty(); }

 private:
  bool is_last_ = false, hides_nothing_ = false;
  // Ids of what is recorded behind reductions on the communication stream. None where several
  // micro-batches are reduced, whose memory is waited for.
  std::set<std::int64_t> records_;
};

}  // namespace zl::sim
