// Trace events: the common currency of recorder, pricing, exporters, GUI and store.
// Ownership: plain values. Threads: `timing` is written by the stream that executes the event and
// may be read after that stream was synchronised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/memory.h"
#include "core/ops/cost.h"

namespace zl {

enum class EventType : std::uint8_t {
  op,
  collective,
  copy,
  transfer,  // of a file
  record,
  wait,
  allocate,
  free,
  synchronize,
  message  // to or from one rank
};

// What a copy or a transfer crosses.
enum class Route : std::uint8_t { host_to_device, device_to_host, file_to_host, host_to_file };
inline constexpr std::size_t kRoutes = 4;
const char* name_of(Route route);

// Where in the step an event happens.
enum class Phase : std::uint8_t {
  init,
  forward,
  backward,
  recompute,
  reduce,
  optimizer,
  gather,
  other,
  weight_gradient,    // the second half of a backward that comes in halves
  recompute_products  // of all but attention
};
inline constexpr std::size_t kPhases = 10;
const char* name_of(Phase phase);

// Steady-clock nanoseconds of execution; zero on the recording device and for untimed events.
struct Timing {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t met_ns = 0;  // collective: when all of its ranks had come; 0: nobody tells

  bool operator==(const Timing&) const = default;
};

// Unit indices: 0 the embedding, 1..layers the blocks, layers+1 the final norm and head; -1 none.
struct Scope {
  Phase phase = Phase::other;
  std::uint8_t chunk = 0;  // of a pipeline's rank, which of its stages
  std::int16_t unit = -1;
  std::int32_t step = 0;
  std::int32_t micro = -1;  // micro-batch of the step; -1: of none, or of all

  bool operator==(const Scope&) const = default;
};

struct TraceEvent {
  EventType type = EventType::op;
  std::uint8_t kind = 0;  // op: index in the Op variant; collective: CollectiveKind; copy,
                          // transfer: Route; free/allocate: MemoryTag; message: 1 sends, 0 receives
  std::uint8_t stream = 0;
  std::uint8_t purpose = 0;  // collective, copy: Purpose; op: Cost's Variant
  std::uint8_t axis = 0;     // collective, message: Axis
  DType dtype = DType::f32;
  MemorySpace space = MemorySpace::device;
  Scope scope;
  std::int32_t stride =
      1;  // collective, message: ranks of the world between neighbours of the group
  // Cost's shape; collective: elements, segments, ranks; message: elements, rank of the peer in the
  // group, ranks; transfer: requests in m
  std::int64_t m = 0, n = 0, k = 0;
  double flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;  // allocate/free: size; collective: payload bytes per rank
  std::int64_t wire_bytes = 0;     // collective: sent by this rank
  std::int64_t id = 0;             // record/wait: event id; allocate/free: address; message: its
                                   // place in its exchange; collective: bytes that source and
                                   // destination share
  const char* what = "";           // allocate: the block's label; a literal
  Timing timing;

  bool operator==(const TraceEvent&) const = default;
};

// Of an op, its Cost's; none of other events.
inline Variant variant_of(const TraceEvent& event) {
  return event.type == EventType::op ? static_cast<Variant>(event.purpose) : Variant::none;
}

}  // namespace zl
