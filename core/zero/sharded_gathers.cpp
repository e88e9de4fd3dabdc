// How the weights of ShardedWeights are brought together.
#include <algorithm>

#include "core/zero/quantized_collectives.h"
#include "core/zero/sharded_weights.h"

namespace zl {

void ShardedWeights::start_gather(std::size_t visit) {
  Gathered gathered;
  std::int64_t padded = 0;
  for (const int p : visit_parameters_[visit]) {
    if (!live_[p].empty()) continue;
    gathered.parameters.push_back(p);
    gathered.elements += partition_.slot(p).count;
    padded += partition_.slot(p).padded;
  }
  if (gathered.parameters.empty()) return;
  const int unit = visits_[visit].unit;
  ScopeGuard scope(context_, Phase::gather, unit);
  gathered.storage = context_.allocate(config_.precision.compute_dtype, Shape{padded},
                                       MemoryTag::parameter, {"gathered weights", unit});
  std::int64_t offset = 0;
  for (const int p : gathered.parameters) {
    live_[p] = gathered.storage.view.flat(offset, partition_.slot(p).padded);
    offset += partition_.slot(p).padded;
  }
  const StreamId stream = config_.zero.overlap_comm ? StreamId::communication : StreamId::compute;
  // The block may have been used by earlier work of the compute stream.
  if (config_.zero.overlap_comm) context_.wait(stream, context_.record(StreamId::compute));
  gather(stream, visit, gathered);
  if (config_.zero.overlap_comm) gathered.event = context_.record(stream);
  live_elements_ += gathered.elements;
  ahead_elements_ += gathered.elements;
  gathered_.push_back(std::move(gathered));
}

// What a forward kept has been quantized already where gathers are.
void ShardedWeights::gather(StreamId stream, std::size_t visit, Gathered& gathered) {
  std::vector<Segment> segments;
  const bool nearby = secondary_->any() && visits_[visit].pass == Pass::backward;
  if (nearby) {
    for (const int p : gathered.parameters) segments.push_back(secondary_->segment(p, live_[p]));
  } else {
    segments = bring(stream, gathered.parameters);
  }
  if (config_.zero.quantized_weights && !nearby) {
    gathered.wire = quantized_all_gather(context_, stream, segments);
    return;
  }
  context_.collective(stream, {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, segments,
                               nearby ? Axis::secondary : context_.mesh().sharding()});
}

std::vector<Segment> ShardedWeights::bring(StreamId stream, const std::vector<int>& parameters) {
  std::vector<Segment> segments;
  const bool off_device = std::any_of(parameters.begin(), parameters.end(),
                                      [&](int p) { return tier(p) != Tier::device; });
  // The destination may have been used by earlier work of the compute stream.
  if (off_device) context_.wait(StreamId::copy_in, context_.record(StreamId::compute));
  for (const int p : parameters) {
    const TensorView& whole = live_[p];
    TensorView own = owned(p);
    if (tier(p) != Tier::device) own = partition_.own_chunk(whole);
    if (tier(p) == Tier::cpu) {
      context_.copy(StreamId::copy_in, Route::host_to_device, own, owned(p));
    } else if (tier(p) == Tier::nvme) {
      files_->fetch(p, own);
    }
    segments.push_back({own, whole});
  }
  if (off_device) context_.wait(stream, context_.record(StreamId::copy_in));
  return segments;
}

void ShardedWeights::gather_updated() {
  if (persistent_.empty()) return;
  ScopeGuard scope(context_, Phase::gather, -1);
  const std::vector<Segment> segments = bring(StreamId::compute, persistent_);
  context_.collective(StreamId::compute, {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data,
                                          segments, context_.mesh().sharding()});
}

}  // namespace zl
