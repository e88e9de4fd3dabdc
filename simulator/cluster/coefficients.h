// Fitted prices of a machine that was measured: seconds as linear functions of work.
// Ownership: values. Threads: immutable once fitted or read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/device/communicator.h"
#include "core/ops/matmul.h"
#include "core/ops/op.h"
#include "core/trace/event.h"
#include "simulator/cluster/device_spec.h"

namespace zl::sim {

// seconds = fixed + per_unit * units + per_byte * bytes. Units: FLOPs of an op, segments of a
// collective, requests of a file transfer. Bytes: priced_bytes(). All coefficients are at least 0.
struct LinearCost {
  double fixed = 0, per_unit = 0, per_byte = 0;
  double spread = 0;         // relative standard deviation of shape means around the line
  std::int64_t samples = 0;  // 0: not fitted
  double from_bytes = 0;     // of work that moves at least so many bytes

  double seconds(double units, double bytes) const {
    return fixed + per_unit * units + per_byte * bytes;
  }
  bool operator==(const LinearCost&) const = default;
};

// What was fitted from runs with one number of ranks. Lines of large work are there where one line
// cannot tell both: where caches end, or where a transfer has as many requests under way as there
// may be.
struct RankCoefficients {
  using OpLines = std::array<std::array<LinearCost, kDTypes>, kOpKinds>;
  using CollectiveLines = std::array<std::array<LinearCost, kDTypes>, kCollectiveKinds>;
  using RouteLines = std::array<LinearCost, kRoutes>;

  int ranks = 1;
  OpLines ops{}, large_ops{};
  // Matrix products with a transpose, for which there are other kernels: of the second factor, as
  // of weights in forward passes, and of the first, as in gradients of weights. ops: all others.
  OpLines forward_ops{}, large_forward_ops{};
  OpLines gradient_ops{}, large_gradient_ops{};
  OpLines host_ops{};                                  // of the host's stream
  CollectiveLines collectives{}, large_collectives{};  // waiting included
  RouteLines routes{}, large_routes{};                 // copies and file transfers
  double seconds_per_event = 0;                        // host time between two ops
  double seconds_per_step = 0;                         // host time between two steps
  // Host time where one stream waits for another: of threads that share cores, to hand them over.
  double seconds_per_wait = 0;

  bool operator==(const RankCoefficients&) const = default;
};

struct Calibration {
  std::vector<RankCoefficients> by_ranks;  // at least one, by ascending ranks
  double overlap_loss = 0;                 // see ClusterSpec
  double step_error = 0;  // whose bar holds nine in ten of the held-out runs, at any moment
  int runs = 0;
  // What of the errors' logarithms is each run's own: their standard deviation around the mean of
  // the runs with as many ranks, which err together. 0: not known.
  double own_error = 0;
  bool quiet = false;  // prices are of the quietest moments: what others do comes on top
  // The loss where a file's transfer and other work overlap: a disk takes little of the cores. Two
  // transfers share the disk: overlap_loss. None: no run had files; also that.
  std::optional<double> file_overlap_loss = {};

  // The entry whose ranks are nearest.
  const RankCoefficients& nearest(int ranks) const;
  bool operator==(const Calibration&) const = default;
};

// What an event reads and writes. Of a gather, and of any collective of one rank, what it moves:
// not what is in its place before it.
inline double priced_bytes(const TraceEvent& event) {
  std::int64_t bytes = event.bytes_read + event.bytes_written;
  if (event.type == EventType::collective) {
    const bool gathers = event.kind == static_cast<std::uint8_t>(CollectiveKind::all_gather);
    if (gathers) bytes = 2 * event.bytes_written;
    if (gathers || event.k == 1) bytes -= 2 * event.id;
  }
  return static_cast<double>(bytes);
}

// What tells a matrix product from others of its shape; none for other events.
inline Variant product_variant(const TraceEvent& event) {
  return event.kind == kOpKind<Gemm> ? variant_of(event) : Variant::none;
}

// An entry's lines of ops of a variant: of little work and of much. Refer to the entry.
template <class Entry>
auto op_lines(Entry& entry, Variant variant) {
  using Lines = std::pair<decltype((entry.ops)), decltype((entry.ops))>;
  switch (variant) {
    case Variant::transposed_a:
      return Lines(entry.gradient_ops, entry.large_gradient_ops);
    case Variant::transposed_b:
      return Lines(entry.forward_ops, entry.large_forward_ops);
    default:
      return Lines(entry.ops, entry.large_ops);
  }
}

}  // namespace zl::sim
