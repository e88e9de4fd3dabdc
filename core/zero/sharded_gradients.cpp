#include "core/zero/sharded_gradients.h"
#include "core/ops/elementwise.h"

#include <algorithm>

namespace zl {

ShardedGradients::ShardedGradients(RankContext& context, const StoreConfig& config,
                                   const ParameterTable& table, const Partition& partition)
    : context_(context),
      config_(config),
      table_(table),
      partition_(partition),
      reducer_(context, config, partition),
      view_(table.specs.size()) {
  std::int64_t shared = 0;
  for (std::size_t p = 0; p < table.specs.size(); ++p) {
    if (!needs_own_buffer(static_cast<int>(p)))
      shared += partition.slot(static_cast<int>(p)).padded;
  }
  bucket_capacity_ = std::min(config.zero.reduce_bucket_size, shared);
  make_shards();
}

// The first parameters' on the device, the others' on the host.
void ShardedGradients::make_shards() {
  const int first_on_host = config_.placement.first_on_host();
  std::int64_t elements = partition_.shard_elements();
  if (config_.placement.any_on_host()) {
    elements = partition_.slot(first_on_host).shard_offset;
    std::int64_t largest = bucket_capacity_ / partition_.ranks();
    for (int p = first_on_host; p < static_cast<int>(partition_.size()); ++p) {
      if (needs_own_buffer(p)) largest = std::max(largest, partition_.slot(p).chunk);
    }
    if (config_.gradient_accumulation == 1) largest = 0;
    host_.emplace(context_, config_.offload, config_.precision.grad_accum_dtype, partition_,
                  first_on_host, largest);
  }
  if (elements == 0) return;
  shards_ = context_.allocate(config_.precision.grad_accum_dtype, Shape{elements},
                              MemoryTag::gradient, {"gradient shards"});
  context_.run(Fill{shards_.view, 0});
}

void ShardedGradients::begin_micro_batch(bool first, bool /*last*/) { first_ = first; }

bool ShardedGradients::needs_own_buffer(int parameter) const {
  return partition_.slot(parameter).padded > config_.zero.reduce_bucket_size ||
         (table_.tied() && parameter == table_.token_embedding);
}

GradientTarget ShardedGradients::target(int parameter) {
  const auto index = static_cast<std::size_t>(parameter);
  const bool accumulate = !view_[index].empty();
  if (!accumulate) view_[index] = place(parameter);
  return {
      view_[index].flat(0, partition_.slot(parameter).count).reshaped(table_.specs[index].shape),
      accumulate};
}

TensorView ShardedGradients::place(int parameter) {
  const Partition::Slot& slot = partition_.slot(parameter);
  Bucket* bucket = nullptr;
  if (needs_own_buffer(parameter)) {
    bucket = &open_bucket(slot.padded);
    bucket->closed = true;
  } else {
    for (Bucket& open : buckets_) {
      if (!open.closed) bucket = &open;
    }
    if (bucket != nullptr && bucket->used + slot.padded > bucket_capacity_) {
      close(*bucket);
      bucket = nullptr;
    }
    if (bucket == nullptr) bucket = &open_bucket(bucket_capacity_);
  }
  const TensorView padded = bucket->storage.view.flat(bucket->used, slot.padded);
  if (slot.padded > slot.count) {
    context_.run(Fill{padded.flat(slot.count, slot.padded - slot.count), 0});
  }
  bucket->used += slot.padded;
  bucket->unready += 1;
  bucket->parameters.push_back(parameter);
  return padded;
}

ShardedGradients::Bucket& ShardedGradients::open_bucket(std::int64_t elements) {
  retire(1);
  Bucket& bucket = buckets_.emplace_back();
  bucket.storage = context_.allocate(config_.precision.grad_accum_dtype, Shape{elements},
                                     MemoryTag::communication, {kGradientBucket});
  return bucket;
}

// No more parameters; reduced as soon as all it holds are ready.
void ShardedGradients::close(Bucket& bucket) {
  bucket.closed = true;
  if (bucket.unready > 0) return;
  flush(std::find_if(buckets_.begin(), buckets_.end(),
                     [&](const Bucket& other) { return &other == &bucket; }));
}

void ShardedGradients::ready(int parameter) {
  const auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& candidate) {
    return std::find(candidate.parameters.begin(), candidate.parameters.end(), parameter) !=
           candidate.parameters.end();
  });
  ZL_CHECK(bucket != buckets_.end(), "gradient declared ready before it was made");
  bucket->unready -= 1;
  if (bucket->used >= bucket_capacity_) bucket->closed = true;
  if (bucket->closed && bucket->unready == 0) flush(bucket);
}

void ShardedGradients::flush(std::list<Bucket>::iterator bucket) {
  ScopeGuard scope(context_, Phase::reduce, context_.scope().unit);
  std::vector<GradientReducer::Item> items;
  std::vector<HostGradients::Chunk> chunks;
  std::vector<WholeGradient> whole;
  for (const int p : bucket->parameters) {
    TensorView& padded = view_[p];
    whole.push_back({p, padded});
    if (on_host(p)) {
      chunks.push_back({p, partition_.own_chunk(padded)});
      items.push_back({padded, chunks.back().view, false});
    } else {
      items.push_back({padded, owned(p), !first_});
    }
    padded = {};
  }
  const StreamId stream = reducer_.stream();
  InFlight entry;
  if (stream != StreamId::compute) context_.wait(stream, context_.record(StreamId::compute));
  entry.copies = sum_copies(context_, stream, table_, whole);
  entry.wire = reducer_.reduce_scatter(stream, items);
  entry.storage = std::move(bucket->storage);
  buckets_.erase(bucket);
  if (!chunks.empty()) {
    std::vector<TensorView> leaving;
    for (const HostGradients::Chunk& chunk : chunks) leaving.push_back(chunk.view);
    reducer_.average_replicas(stream, leaving);
    entry.event = host_->take(stream, chunks, !first_);
  } else if (stream == StreamId::compute) {
    return;  // freed in stream order
  } else {
    entry.event = context_.record(stream);
  }
  in_flight_.push_back(std::move(entry));
}

// Waits for and frees the oldest buffers on their way until `keep` remain.
void ShardedGradients::retire(std::size_t keep) {
  while (in_flight_.size() > keep) {
    context_.wait(StreamId::compute, in_flight_.front().event);
    in_flight_.pop_front();
  }
}

void ShardedGradients::end_micro_batch() {
  while (!buckets_.empty()) {
    ZL_CHECK(buckets_.front().unready == 0, "a gradient was made but never declared ready");
    flush(buckets_.begin());
  }
  retire(0);
}

// Once a step, what all micro-batches have added up on the device.
void ShardedGradients::end_stage(int first, int end) {
  end = std::min(end, config_.placement.first_on_host());
  if (first >= end) return;
  const Partition::Slot& last = partition_.slot(end - 1);
  const std::int64_t begin = partition_.slot(first).shard_offset;
  const StreamId stream = reducer_.stream();
  if (stream != StreamId::compute) context_.wait(stream, context_.record(StreamId::compute));
  reducer_.average_replicas(stream,
                            {shards_.view.flat(begin, last.shard_offset + last.chunk - begin)});
  if (stream != StreamId::compute) context_.wait(StreamId::compute, context_.record(stream));
}

}  // namespace zl
