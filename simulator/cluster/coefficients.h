// Fitted prices of a machine that was measured: seconds as linear functions of work.
// Ownership: values. Threads: immutable once fitted or read.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/dtype.h"
#include "core/device/communicator.h"
#include "core/ops/matmul.h"
#include "core/ops/op.h"
#include "core/trace/event.h"
#include "simulator/cluster/device_spec.h"

namespace zl::sim {

// seconds = fixed + per_unit * units + per_byte * bytes. Units: FLOPs of an op, segments of a
// collective, requests of a file transfer. Bytes: read + written. All coefficients are at least 0.
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

// What was fitted from runs with one number of ranks. Lines of large work are there where caches do
// not hold it, so that one line cannot tell both.
struct RankCoefficients {
  using OpLines = std::array<std::array<LinearCost, kDTypes>, kOpKinds>;
  using CollectiveLines = std::array<std::array<LinearCost, kDTypes>, kCollectiveKinds>;

  int ranks = 1;
  OpLines ops{}, large_ops{};
  OpLines forward_ops{}, large_forward_ops{};  // matrix products of forward passes; ops: all others
  OpLines host_ops{};                          // beside a device
  CollectiveLines collectives{}, large_collectives{};  // waiting included
  std::array<LinearCost, kRoutes> routes{};            // copies and file transfers
  double seconds_per_event = 0;                        // host time between two ops
  double seconds_per_step = 0;                         // host time between two steps

  bool operator==(const RankCoefficients&) const = default;
};

struct Calibration {
  std::vector<RankCoefficients> by_ranks;  // at least one, by ascending ranks
  double overlap_loss = 0;                 // see ClusterSpec
  double step_error = 0;  // relative root mean square error of step times of held-out runs
  int runs = 0;
  // What of the errors' logarithms is each run's own: their standard deviation around the mean of
  // the runs with as many ranks, which err together. 0: not known.
  double own_error = 0;

  // The entry whose ranks are nearest.
  const RankCoefficients& nearest(int ranks) const;
  bool operator==(const Calibration&) const = default;
};

// Whether an op is a matrix product of a forward pass: its weights are transposed, for which
// a processor has other kernels.
inline bool is_forward_product(const TraceEvent& event) {
  const Phase phase = event.scope.phase;
  const bool forward =
      phase == Phase::forward || phase == Phase::recompute || phase == Phase::recompute_products;
  return event.type == EventType::op && event.kind == kOpKind<Gemm> && forward;
}

}  // namespace zl::sim
