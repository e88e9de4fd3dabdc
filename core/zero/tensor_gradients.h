// Gradients of what several ranks of a tensor group hold copies of: under sequence parallelism each
// has those of its rows (norms), and of kv heads on several ranks those of its queries
// (Megatron-LM allreduces the former in finalize_model_grads).
// Ownership: none. Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/model/parameters.h"
#include "core/rank/rank_context.h"

namespace zl {

struct WholeGradient {
  int parameter = 0;
  TensorView view;  // of this rank's part of the parameter, perhaps with padding
};

// Adds up what the ranks have, before it is reduced over data: by the first ranks' copies, so that
// all copies get the same bits. Enqueued on `stream`; returns what must live until it has passed.
std::vector<Tensor> sum_copies(RankContext& context, StreamId stream, const ParameterTable& table,
                               const std::vector<WholeGradient>& gradients);

}  // namespace zl
