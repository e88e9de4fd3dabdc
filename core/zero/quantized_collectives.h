// ZeRO++ (Wang et al. 2023): collectives whose data crosses the wire in blocks of signed bytes,
// half of 16 bits plus a scale for every kQuantizedBlock elements. Ownership: what they return must
// live until the stream has passed them. Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/rank/rank_context.h"

namespace zl {

inline constexpr std::int64_t kQuantizedBlock = 256;

// As an all-gather of these segments, whose destinations get what the wire's bytes say, the rank's
// own chunk included, so that all ranks hold the same weights.
Tensor quantized_all_gather(RankContext& context, StreamId stream,
                            const std::vector<Segment>& segments);

// One tensor [ranks * chunk] to be added over the ranks, and where this rank's chunk goes.
struct QuantizedSum {
  TensorView source, destination;
  bool add = false;  // to what is there
};

// destination = factor * sum over the ranks of their sources' chunks; quantized once, summed in
// f32.
Tensor quantized_reduce_scatter(RankContext& context, StreamId stream,
                                const std::vector<QuantizedSum>& sums, double factor);

}  // namespace zl
