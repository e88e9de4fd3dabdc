// Initial values of parameters: the same bits for every stage, number of ranks and tier.
// Ownership: HostDraw owns its slice. Threads: one rank's thread.
#pragma once

#include "core/model/parameters.h"
#include "core/model/weight_source.h"
#include "core/rank/rank_context.h"

namespace zl {

// Fills [begin, begin + view.count()) of the flattened parameter: by its InitKind, or with the
// values of the source, for which the host waits.
void draw_initial(RankContext& context, const ParameterSpec& spec, const InitialWeights& initial,
                  std::int64_t begin, const TensorView& view);

// draw_initial into host memory, on the compute stream: drawn by the device slice by slice, so that
// every tier starts from the same bits.
class HostDraw {
 public:
  HostDraw(RankContext& context, DType dtype);
  void operator()(const ParameterSpec& spec, const InitialWeights& initial, std::int64_t begin,
                  const TensorView& view);
  void zero(const TensorView& view);

 private:
  RankContext& context_;
  Tensor slice_;
};

}  // namespace zl
