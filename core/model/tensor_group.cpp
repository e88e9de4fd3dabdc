#include "core/model/tensor_group.h"

#include <utility>

namespace zl {

TensorView TensorGroup::gather(StreamId stream, const TensorView& part, Tensor& storage,
                               Label label) const {
  storage = context_.allocate(part.dtype, {part.rows() * shard_.ranks, part.columns()},
                              MemoryTag::activation, label);
  // The memory may have been another tensor's until now.
  if (stream != StreamId::compute) context_.wait(stream, context_.record(StreamId::compute));
  const Segment segment{part, storage};
  context_.collective(
      stream,
      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
  return storage;
}

Tensor TensorGroup::add_up(StreamId stream, const TensorView& partial, Label label) const {
  const bool cuts = shard_.sequence_parallel;
  Tensor part;
  if (cuts) {
    part = context_.allocate(partial.dtype, {partial.rows() / shard_.ranks, partial.columns()},
                             MemoryTag::activation, label);
  }
  if (stream != StreamId::compute) context_.wait(stream, context_.record(StreamId::compute));
  const Segment segment{partial, cuts ? part.view : partial};
  context_.collective(stream, {cuts ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                               ReduceOp::sum,
                               Purpose::data,
                               {&segment, 1},
                               Axis::tensor});
  return part;
}

TensorView TensorGroup::gathered(const TensorView& part, Tensor& storage, Label label) const {
  return shard_.cuts_rows() ? gather(StreamId::compute, part, storage, label) : part;
}

Tensor TensorGroup::summed(Tensor partial, Label label) const {
  if (!has_others()) return partial;
  Tensor part = add_up(StreamId::compute, partial, label);
  return shard_.sequence_parallel ? std::move(part) : std::move(partial);
}

TensorGroup::Arriving TensorGroup::begin_gather(const TensorView& part, Label label) const {
  Arriving rows{.view = part, .storage = {}, .from = {}};
  if (!shard_.cuts_rows()) return rows;
  rows.view = gather(StreamId::communication, part, rows.storage, label);
  rows.event = context_.record(StreamId::communication);
  return rows;
}

TensorGroup::Arriving TensorGroup::begin_sum(Tensor partial, Label label) const {
  Arriving sum{.view = {}, .storage = add_up(StreamId::communication, partial, label), .from = {}};
  (shard_.sequence_parallel ? sum.from : sum.storage) = std::move(partial);
  sum.view = sum.storage;
  sum.event = context_.record(StreamId::communication);
  return sum;
}

void TensorGroup::arrived(Arriving& arriving) const {
  if (arriving.event >= 0) context_.wait(StreamId::compute, arriving.event);
  arriving.event = -1;
  arriving.from.reset();
}

}  // namespace zl
