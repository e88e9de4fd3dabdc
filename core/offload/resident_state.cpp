#include "core/offload/resident_state.h"

namespace zl {

ResidentState::ResidentState(RankContext& context, const OffloadConfig& offload,
                             const OptimizerConfig& optimizer, const std::vector<SubGroup>& groups)
    : groups_(groups) {
  std::int64_t elements = 0;
  for (const SubGroup& group : groups) {
    if (!group.on_host) continue;
    if (elements == 0) begin_ = group.begin;
    elements += group.elements;
  }
  const auto allocate = [&](const char* what) {
    return context.allocate(DType::f32, Shape{elements}, MemoryTag::optimizer, {what},
                            host_space(offload));
  };
  master_ = allocate("master weights");
  if (has_first_moment(optimizer)) first_ = allocate("first moment");
  if (has_second_moment(optimizer)) second_ = allocate("second moment");
}

StateViews ResidentState::state(std::size_t group) const {
  const auto part = [&](const Tensor& tensor) {
    return tensor.view.empty()
               ? TensorView{}
               : tensor.view.flat(groups_[group].begin - begin_, groups_[group].elements);
  };
  return {part(master_), part(first_), part(second_)};
}

}  // namespace zl
