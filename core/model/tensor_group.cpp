#include "core/model/tensor_group.h"

#include <utility>

namespace zl {

TensorView TensorGroup::gathered(const TensorView& part, Tensor& storage, Label label) const {
  if (!shard_.cuts_rows()) return part;
  storage = context_.allocate(part.dtype, {part.rows() * shard_.ranks, part.columns()},
                              MemoryTag::activation, label);
  const Segment segment{part, storage};
  context_.collective(
      StreamId::compute,
      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
  return storage;
}

Tensor TensorGroup::summed(Tensor partial, Label label) const {
  if (!has_others()) return partial;
  if (!shard_.sequence_parallel) {
    const Segment segment{partial, partial};
    context_.collective(
        StreamId::compute,
        {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
    return partial;
  }
  const TensorView& all = partial.view;
  Tensor part = context_.allocate(all.dtype, {all.rows() / shard_.ranks, all.columns()},
                                  MemoryTag::activation, label);
  const Segment segment{all, part};
  context_.collective(
      StreamId::compute,
      {CollectiveKind::reduce_scatter, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
  return part;
}

}  // namespace zl
