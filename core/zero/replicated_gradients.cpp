#include "core/zero/replicated_gradients.h"

#include "core/ops/elementwise.h"
#include "core/zero/tensor_gradients.h"

#include <algorithm>

namespace zl {

ReplicatedGradients::ReplicatedGradients(RankContext& context, const StoreConfig& config,
                                         const ParameterTable& table, const Partition& partition)
    : context_(context),
      config_(config),
      table_(table),
      partition_(partition),
      reducer_(context, config, partition),
      touched_(table.specs.size(), false) {
  gradients_ = context.allocate(config.precision.grad_accum_dtype, Shape{partition.full_elements()},
                                MemoryTag::gradient, {"gradients"});
  context.run(Fill{gradients_.view, 0});  // the padding stays zero for ever
  if (config.placement.any_on_host()) {
    host_.emplace(context, config.offload, config.precision.grad_accum_dtype, partition,
                  config.placement.first_on_host(), 0);
  }
}

void ReplicatedGradients::begin_micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
  std::fill(touched_.begin(), touched_.end(), false);
}

GradientTarget ReplicatedGradients::target(int parameter) {
  const auto index = static_cast<std::size_t>(parameter);
  const Partition::Slot& slot = partition_.slot(parameter);
  const bool accumulate = !first_ || touched_[index];
  touched_[index] = true;
  return {gradients_.view.flat(slot.full_offset, slot.count).reshaped(table_.specs[index].shape),
          accumulate};
}

void ReplicatedGradients::ready(int parameter) {
  if (!last_ || !averages_) return;
  const std::int64_t elements = partition_.slot(parameter).padded;
  if (bucket_elements_ > 0 && bucket_elements_ + elements > config_.zero.reduce_bucket_size)
    flush();
  bucket_.push_back(parameter);
  bucket_elements_ += elements;
  if (bucket_elements_ >= config_.zero.reduce_bucket_size) flush();
}

void ReplicatedGradients::flush() {
  if (bucket_.empty()) return;
  ScopeGuard scope(context_, Phase::reduce, context_.scope().unit);
  std::vector<GradientReducer::Item> items;
  for (const int p : bucket_) {
    const TensorView padded = partition_.padded(gradients_, p);
    items.push_back({padded, partition_.own_chunk(padded)});
  }
  const StreamId stream = reducer_.stream();
  if (stream != StreamId::compute) context_.wait(stream, context_.record(StreamId::compute));
  std::vector<WholeGradient> whole;
  for (std::size_t i = 0; i < items.size(); ++i) whole.push_back({bucket_[i], items[i].padded});
  for (Tensor& each : sum_copies(context_, stream, table_, whole)) {
    in_flight_.push_back(std::move(each));
  }
  in_flight_.push_back(config_.zero.stage == 0 ? reducer_.all_reduce(stream, items)
                                               : reducer_.reduce_scatter(stream, items));
  if (config_.zero.stage > 0) {
    std::vector<TensorView> reduced;
    for (const GradientReducer::Item& item : items) reduced.push_back(item.destination);
    reducer_.average_replicas(stream, reduced);
  }
  if (stream == StreamId::compute) in_flight_.clear();
  std::vector<HostGradients::Chunk> chunks;
  for (const int p : bucket_) {
    if (on_host(p)) chunks.push_back({p, partition_.chunk_of(gradients_, p)});
  }
  if (!chunks.empty()) taken_ = host_->take(stream, chunks, false);
  bucket_.clear();
  bucket_elements_ = 0;
}

void ReplicatedGradients::end_micro_batch() {
  if (!last_ || !averages_) return;
  flush();
  if (reducer_.stream() != StreamId::compute) {
    context_.wait(StreamId::compute, context_.record(reducer_.stream()));
  }
  in_flight_.clear();
  if (taken_ >= 0) context_.wait(StreamId::compute, taken_);
}

TensorView ReplicatedGradients::owned(int parameter) {
  if (on_host(parameter)) return host_->owned(parameter);
  return config_.zero.stage == 0 ? partition_.padded(gradients_, parameter)
                                 : partition_.chunk_of(gradients_, parameter);
}

}  // namespace zl
