#include "core/zero/sharded_weights.h"

#include <algorithm>
#include <optional>

#include "core/ops/elementwise.h"

namespace zl {

ShardedWeights::ShardedWeights(RankContext& context, const StoreConfig& config,
                               const ParameterTable& table, const Partition& partition,
                               const std::vector<Visit>& visits)
    : context_(context),
      config_(config),
      table_(table),
      partition_(partition),
      is_persistent_(table.specs.size(), false),
      live_(table.specs.size()) {
  place();
  choose_persistent();
  std::vector<bool> is_gathered = is_persistent_;
  is_gathered.flip();
  secondary_.emplace(context_, config_.precision.compute_dtype, partition_, is_gathered);
  follow(visits);
}

void ShardedWeights::follow(const std::vector<Visit>& visits) {
  ZL_CHECK(gathered_.empty(), "the order of visits changes between micro-batches");
  visits_ = visits;
  next_visit_ = next_prefetch_ = 0;
  visit_parameters_.clear();
  visit_elements_.clear();
  for (const Visit& visit : visits) {
    visit_parameters_.push_back(needed_by(visit));
    std::int64_t elements = 0;
    for (const int p : visit_parameters_.back()) elements += partition_.slot(p).count;
    visit_elements_.push_back(elements);
  }
}

// In table order: what the device updates stays there, then what host memory may hold, then files.
void ShardedWeights::place() {
  const OffloadConfig& offload = config_.offload;
  std::int64_t on_device = 0, on_host = 0;
  std::vector<int> in_files;
  for (int p = 0; p < static_cast<int>(partition_.size()); ++p) {
    const std::int64_t chunk = partition_.slot(p).chunk;
    const bool room = in_files.empty() && on_host + chunk <= offload.max_in_cpu;
    Tier tier = offload.parameters;
    if (p < config_.placement.first_on_host()) tier = Tier::device;
    if (tier == Tier::nvme && room) tier = Tier::cpu;
    tiers_.push_back(tier);
    if (tier == Tier::device) on_device += chunk;
    if (tier == Tier::cpu) on_host += chunk;
    if (tier == Tier::nvme) in_files.push_back(p);
  }
  const auto shards = [&](std::int64_t elements, MemorySpace space) {
    if (elements == 0) return Tensor();
    return context_.allocate(config_.precision.compute_dtype, Shape{elements}, MemoryTag::parameter,
                             {"weight shards"}, space);
  };
  shards_ = shards(on_device, MemorySpace::device);
  host_shards_ = shards(on_host, host_space(offload));
  if (!in_files.empty()) {
    files_ = std::make_unique<WeightFiles>(context_, offload, config_.precision.compute_dtype,
                                           partition_, in_files);
  }
}

TensorView ShardedWeights::owned(int parameter) {
  const Partition::Slot& slot = partition_.slot(parameter);
  if (tier(parameter) == Tier::nvme) return {};
  if (tier(parameter) == Tier::device) return shards_.view.flat(slot.shard_offset, slot.chunk);
  const std::int64_t begin = shards_.view.empty() ? 0 : shards_.view.count();
  return host_shards_.view.flat(slot.shard_offset - begin, slot.chunk);
}

// In table order while the parameter is small enough and the model's share is not used up.
void ShardedWeights::choose_persistent() {
  std::int64_t total = 0, padded = 0;
  for (std::size_t p = 0; p < table_.specs.size(); ++p) {
    const Partition::Slot& slot = partition_.slot(static_cast<int>(p));
    if (slot.count > config_.zero.param_persistence_threshold) continue;
    if (slot.count > config_.zero.model_persistence_threshold - total) continue;
    total += slot.count;
    padded += slot.padded;
    is_persistent_[p] = true;
    persistent_.push_back(static_cast<int>(p));
  }
  if (persistent_.empty()) return;
  persistent_storage_ = context_.allocate(config_.precision.compute_dtype, Shape{padded},
                                          MemoryTag::parameter, {"persistent weights"});
  std::int64_t offset = 0;
  for (const int p : persistent_) {
    live_[p] = persistent_storage_.view.flat(offset, partition_.slot(p).padded);
    offset += partition_.slot(p).padded;
  }
}

// A unit's own parameters, whether or not an op of the pass reads each (DeepSpeed's module hooks do
// the same), so that every parameter is gathered twice per micro-batch. A tied embedding serves the
// head's backward, which makes the logits, in place of its own, which does not read it.
std::vector<int> ShardedWeights::needed_by(const Visit& visit) const {
  std::vector<int> needed;
  for (std::size_t i = 0; i < table_.specs.size(); ++i) {
    const int p = static_cast<int>(i);
    const bool tied_embedding = table_.tied() && p == table_.token_embedding;
    bool wanted = table_.specs[i].unit == visit.unit;
    if (tied_embedding) {
      wanted = visit.unit == (visit.pass == Pass::forward ? 0 : table_.head_unit());
    }
    if (wanted && !is_persistent_[i]) needed.push_back(p);
  }
  return needed;
}

void ShardedWeights::initialize(const InitialWeights& initial) {
  if (!shards_.view.empty()) context_.run(Fill{shards_.view, 0});
  std::optional<HostDraw> host_draw;
  if (config_.offload.parameters != Tier::device) {
    if (!host_shards_.view.empty()) context_.run(StreamId::host, Fill{host_shards_.view, 0});
    context_.wait(StreamId::compute, context_.record(StreamId::host));
    host_draw.emplace(context_, config_.precision.compute_dtype);
  }
  for (int p = 0; p < static_cast<int>(partition_.size()); ++p) {
    const ParameterSpec& spec = table_.specs[p];
    const std::int64_t begin = partition_.owned_begin(p), count = partition_.owned_count(p);
    const TensorView whole = tier(p) == Tier::nvme ? files_->first_value(p) : owned(p);
    const TensorView view = count == 0 ? TensorView{} : whole.flat(0, count);
    if (tier(p) == Tier::nvme && count < whole.count()) host_draw->zero(whole);
    if (count > 0 && tier(p) == Tier::device) {
      draw_initial(context_, spec, initial, begin, view);
    } else if (count > 0) {
      (*host_draw)(spec, initial, begin, view);
    }
    if (tier(p) == Tier::nvme) files_->keep(p);
  }
  gather_updated();
}

void ShardedWeights::archive(StateArchive& archive, int parameter, const std::string& name) {
  if (tier(parameter) == Tier::nvme) return files_->archive(archive, parameter, name);
  archive.tensor(
      name, owned(parameter),
      tier(parameter) == Tier::cpu ? StateArchive::Place::host : StateArchive::Place::device);
}

void ShardedWeights::enter(int unit, Pass pass) {
  if (next_visit_ == visits_.size()) next_visit_ = next_prefetch_ = 0;
  const Visit& expected = visits_[next_visit_];
  ZL_CHECK(expected.unit == unit && expected.pass == pass,
           "unit " + std::to_string(unit) + " entered out of order, expected unit " +
               std::to_string(expected.unit));
  const std::size_t visit = next_visit_++;
  start_gather(visit);  // what no prefetch has brought
  next_prefetch_ = std::max(next_prefetch_, visit + 1);
  for (Gathered& gathered : gathered_) {
    if (gathered.readable || !reads(visit, gathered)) continue;
    if (gathered.event >= 0) context_.wait(StreamId::compute, gathered.event);
    gathered.readable = true;
    gathered.wire.reset();
    ahead_elements_ -= gathered.elements;
    if (!secondary_->any() || pass == Pass::backward) continue;
    for (const int p : gathered.parameters) secondary_->keep(p, live_[p]);
  }
  if (config_.zero.overlap_comm) prefetch();
}

// Starts coming visits while less than the prefetch budget is on its way. The budget is tested
// before each visit, so the last may overshoot; a demanded fetch (enter) never waits for it. Stops
// at a visit whose weights are here or on their way now but will be dropped before it.
void ShardedWeights::prefetch() {
  while (next_prefetch_ < visits_.size()) {
    const std::int64_t budget = std::min(config_.zero.prefetch_bucket_size,
                                         config_.zero.max_live_parameters - live_elements_);
    if (ahead_elements_ >= budget) return;
    const bool dropped =
        std::any_of(gathered_.begin(), gathered_.end(), [&](const Gathered& gathered) {
          return reads(next_prefetch_, gathered) && is_dropped_before(next_prefetch_, gathered);
        });
    if (dropped) return;
    start_gather(next_prefetch_++);
  }
}

// After the last visit before `visit` that reads it; weights that no visit reads until then stay
// for this one.
bool ShardedWeights::is_dropped_before(std::size_t visit, const Gathered& gathered) const {
  for (std::size_t last = visit; last >= next_visit_; --last) {
    if (reads(last - 1, gathered)) return !used_soon(last, gathered);
  }
  return false;
}

void ShardedWeights::leave(int, Pass) {
  const std::size_t visit = next_visit_ - 1;
  for (auto it = gathered_.begin(); it != gathered_.end();) {
    const auto current = it++;
    if (current->readable && reads(visit, *current) && !used_soon(next_visit_, *current))
      release(current);
  }
}

bool ShardedWeights::reads(std::size_t visit, const Gathered& gathered) const {
  const std::vector<int>& parameters = visit_parameters_[visit];
  return std::any_of(gathered.parameters.begin(), gathered.parameters.end(), [&](int p) {
    return std::find(parameters.begin(), parameters.end(), p) != parameters.end();
  });
}

// Stays when a visit of this micro-batch from `first` on reads it within max_reuse_distance
// elements of other units' weights and the live window is not overfull.
bool ShardedWeights::used_soon(std::size_t first, const Gathered& gathered) const {
  if (live_elements_ > config_.zero.max_live_parameters) return false;
  std::int64_t distance = 0;
  for (std::size_t visit = first; visit < visits_.size(); ++visit) {
    if (distance >= config_.zero.max_reuse_distance) return false;
    if (reads(visit, gathered)) return true;
    distance += visit_elements_[visit];
  }
  return false;
}

void ShardedWeights::release(std::list<Gathered>::iterator gathered) {
  for (const int p : gathered->parameters) live_[p] = {};
  live_elements_ -= gathered->elements;
  gathered_.erase(gathered);
}

TensorView ShardedWeights::weight(int parameter) {
  const TensorView& view = live_[parameter];
  ZL_CHECK(!view.empty(),
           "weight of '" + table_.specs[parameter].name + "' is read while it is not gathered");
  return view.flat(0, partition_.slot(parameter).count).reshaped(table_.specs[parameter].shape);
}

}  // namespace zl
