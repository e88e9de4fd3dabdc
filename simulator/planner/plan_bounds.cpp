#include "simulator/planner/plan_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/base/dtype.h"
#include "core/model/parameters.h"
#include "simulator/cost/collective.h"

namespace zl::sim {
namespace {

constexpr double kPicoseconds = 1e12;

double bytes_of(DType type) { return static_cast<double>(size_of(type)); }

// Products for the gradients of weights take no longer than so many forwards.
constexpr double kWeightShare = 1.1;

// Adam reads a gradient, both moments and the master weight, and writes the latter three.
constexpr double kUpdateBytes = 28;
// A sum reads both and writes one.
constexpr double kSumAccesses = 3;

double parameters_of_unit(const ParameterTable& table, int unit) {
  double sum = 0;
  for (const ParameterSpec& spec : table.specs) {
    if (spec.unit == unit) sum += static_cast<double>(spec.count());
  }
  return sum;
}

// Bytes a parameter of weights, gradients and optimizer state, of which a rank has some whole and
// some in shards. Only what every strategy of the kind holds.
double bytes_a_parameter(const Strategy& strategy, double shard) {
  const double cut = 1 / shard;
  const ZeroConfig& zero = strategy.zero;
  const OffloadConfig& offload = strategy.offload;
  double held = 0;
  if (offload.parameters == Tier::device) {
    held += bytes_of(strategy.precision.compute_dtype) * (zero.stage == 3 ? cut : 1);
  }
  if (offload.optimizer != Tier::device) return held;
  const bool adam = strategy.optimizer.kind == OptimizerKind::adamw ||
                    strategy.optimizer.kind == OptimizerKind::adam;
  held += bytes_of(strategy.precision.grad_accum_dtype) * (zero.stage >= 2 ? cut : 1);
  if (adam) held += 2 * bytes_of(DType::f32) * (zero.stage >= 1 ? cut : 1);
  return held;
}

// Chunks that the first rank has on their way at its fullest, until the gradients of their inputs
// are known (Qi et al. 2024, zero bubble).
double most_in_flight(PipelineKind kind, double p, double v, double m) {
  switch (kind) {
    case PipelineKind::gpipe:
    case PipelineKind::breadth_first:
      return m * v;
    case PipelineKind::interleaved:
      return v > 1 ? std::min(m * v, (v + 1) * p - 1) : std::min(m, p);
    case PipelineKind::interleaved_zb:
      return std::min(m * v, v * p);
    case PipelineKind::one_f_one_b:
    case PipelineKind::zb_h1:
    case PipelineKind::zb_h2:
    case PipelineKind::zb_v:
    case PipelineKind::dualpipe_v:
      return std::min(m, p);
  }
  return 1;
}

// Layers of the stages [0, count) of `stages`: the first ones have one more where a rest is left.
double layers_before(std::int64_t layers, std::int64_t stages, std::int64_t count) {
  const std::int64_t before = count * (layers / stages) + std::min(layers % stages, count);
  return static_cast<double>(before);
}

}  // namespace

LayerWork layer_work(const StageProfiles& plain, std::int64_t group) {
  const StageProfile& whole = plain.of(StagePlace::whole);
  const LayerSeries& forward = whole.passes[static_cast<std::size_t>(StagePass::forward)];
  const LayerSeries& backward = whole.passes[static_cast<std::size_t>(StagePass::backward)];
  LayerWork work;
  const auto layers = static_cast<double>(group);
  work.forward = static_cast<double>(forward.middle.time) / layers;
  work.backward = static_cast<double>(backward.middle.time) / layers;
  work.first_forward = static_cast<double>(forward.before.time);
  work.first_backward = static_cast<double>(backward.after.time);
  work.last_forward = static_cast<double>(forward.after.time);
  work.last_backward = static_cast<double>(backward.before.time);
  work.kept = std::max<std::int64_t>(0, forward.middle.net / group);
  work.backward_peak = backward.middle.peak;
  work.last_peak = std::max(forward.after.peak, forward.after.net + backward.before.peak);
  return work;
}

LayerWork mixed_work(const LayerWork& kept, const LayerWork& again, double share) {
  LayerWork work = kept;
  work.backward += share * (again.backward - kept.backward);
  work.kept += static_cast<std::int64_t>(share * static_cast<double>(again.kept - kept.kept));
  work.last_peak = std::min(kept.last_peak, again.last_peak);
  return work;
}

// What of a configuration the bounds are made of.
struct PlanBounds::Cut {
  const Strategy& state;
  PipelineKind schedule;
  std::int64_t layers, stages, p, v;
  double m, t, shard, message;
  Mesh mesh;

  double layers_of(std::int64_t stage) const {
    return layers_before(layers, stages, stage + 1) - layers_before(layers, stages, stage);
  }
  // Of a rank of the pipeline, all its chunks.
  double layers_of_rank(std::int64_t rank) const {
    double sum = 0;
    for (std::int64_t chunk = 0; chunk < v; ++chunk) sum += layers_of(stage_of(rank, chunk));
    return sum;
  }
  std::int64_t stage_of(std::int64_t rank, std::int64_t chunk) const {
    const bool back = is_v(schedule) && chunk % 2 == 1;
    return back ? (chunk + 1) * p - 1 - rank : chunk * p + rank;
  }
};

PlanBounds::PlanBounds(const ModelConfig& model, const ClusterSpec& cluster, const PlanSpace& space,
                       std::int64_t sequence_length)
    : model_(model), cluster_(cluster), space_(space), sequence_(sequence_length) {
  const ParameterTable table(model);
  block_ = parameters_of_unit(table, 1);
  embedding_ = parameters_of_unit(table, 0);
  head_ = parameters_of_unit(table, table.head_unit());
  // A rank of its own has a copy.
  const bool copies = table.tied() && space.pipeline.back() > 1;
  if (copies) head_ += static_cast<double>(model.vocab * model.hidden);
}

PlanBounds::Cut PlanBounds::cut_of(const PlanPoint& point,
                                   const PlanSpace::Division& division) const {
  const std::int64_t tensor = space_.tensor[point.tensor],
                     pipeline = space_.pipeline[point.pipeline],
                     chunks = space_.chunks[point.chunks];
  const std::int64_t replicas = space_.replicas[point.replicas];
  const std::int64_t shard = division.data / replicas;
  Mesh mesh{.tensor = static_cast<int>(tensor),
            .shard = static_cast<int>(shard),
            .replicate = static_cast<int>(replicas),
            .pipeline = static_cast<int>(pipeline)};
  return {.state = space_.states[point.state],
          .schedule = space_.schedules[point.schedule],
          .layers = model_.layers,
          .stages = pipeline * chunks,
          .p = pipeline,
          .v = chunks,
          .m = static_cast<double>(division.micro_batches),
          .t = static_cast<double>(tensor),
          .shard = static_cast<double>(shard),
          .message = message_time(point, mesh),
          .mesh = mesh};
}

// Of the nearest two ranks of a pipeline, without waiting.
double PlanBounds::message_time(const PlanPoint& point, const Mesh& mesh) const {
  const std::int64_t cut =
      space_.sequence_parallel[point.sequence_parallel] ? space_.tensor[point.tensor] : 1;
  const std::int64_t bytes = space_.micro_batch[point.micro_batch] * sequence_ * model_.hidden *
                             size_of(space_.states[point.state].precision.compute_dtype) / cut;
  return kPicoseconds * message_seconds(bytes, 0, mesh.stride(Axis::pipeline), cluster_);
}

PlanBound PlanBounds::of(const PlanPoint& point, const PlanSpace::Division& division,
                         const LayerWork& work) const {
  const Cut cut = cut_of(point, division);
  return {least_memory(cut, work), static_cast<std::int64_t>(least_time(cut, work))};
}

std::int64_t PlanBounds::least_memory(const Cut& cut, const LayerWork& work) const {
  const double each = bytes_a_parameter(cut.state, cut.shard) / cut.t;
  const auto p = static_cast<double>(cut.p), v = static_cast<double>(cut.v);
  const double chunk = std::floor(static_cast<double>(cut.layers) / (p * v));
  const double in_flight = cut.p == 1 ? 1 : most_in_flight(cut.schedule, p, v, cut.m);
  // A layer's weights are there where it runs.
  const bool gathers = cut.state.zero.stage == 3 || cut.state.offload.parameters != Tier::device;
  const double window = gathers ? bytes_of(cut.state.precision.compute_dtype) * block_ / cut.t : 0;
  const double first = each * (block_ * cut.layers_of_rank(0) + embedding_) +
                       in_flight * (cut.p == 1 ? static_cast<double>(cut.layers) : chunk) *
                           static_cast<double>(work.kept) +
                       window;
  const std::int64_t end = is_v(cut.schedule) ? 0 : cut.p - 1;
  const double last =
      each * (block_ * cut.layers_of_rank(end) + (cut.p > 1 ? head_ : 0)) +
      static_cast<double>(work.last_peak) +
      (cut.p > 1 ? chunk : static_cast<double>(cut.layers)) * static_cast<double>(work.kept);
  return static_cast<std::int64_t>(std::max(first, last));
}

namespace {

// One collective over parameters of so many bytes.
double collective_time(CollectiveKind kind, Axis axis, const Mesh& mesh, double bytes,
                       const ClusterSpec& cluster) {
  const auto ranks = static_cast<double>(mesh.size(axis));
  if (ranks <= 1) return 0;
  TraceEvent event{.type = EventType::collective, .kind = static_cast<std::uint8_t>(kind)};
  event.stride = mesh.stride(axis);
  event.k = mesh.size(axis);
  const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  event.wire_bytes = static_cast<std::int64_t>(rounds * bytes * (ranks - 1) / ranks);
  return kPicoseconds * collective_seconds(event, cluster);
}

}  // namespace

double PlanBounds::reduce_time(const Cut& cut, double parameters) const {
  const double bytes = bytes_of(cut.state.precision.communication_dtype) * parameters / cut.t;
  const bool whole = cut.state.zero.stage == 0;
  return collective_time(whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
                         cut.mesh.sharding(), cut.mesh, bytes, cluster_);
}

// Of hybrid sharding's copies, once a step.
double PlanBounds::copies_time(const Cut& cut, double parameters) const {
  const double bytes =
      bytes_of(cut.state.precision.grad_accum_dtype) * parameters / (cut.t * cut.shard);
  return collective_time(CollectiveKind::all_reduce, Axis::replicate, cut.mesh, bytes, cluster_);
}

double PlanBounds::gather_time(const Cut& cut, double parameters) const {
  if (cut.state.zero.stage == 0) return 0;
  const double bytes = bytes_of(cut.state.precision.compute_dtype) * parameters / cut.t;
  return collective_time(CollectiveKind::all_gather, cut.mesh.sharding(), cut.mesh, bytes,
                         cluster_);
}

// What a micro-batch's gradients take to the host, and there where they are added up.
double PlanBounds::host_time(const Cut& cut, double parameters) const {
  const OffloadConfig& offload = cut.state.offload;
  if (cut.state.zero.stage < 2 || offload.optimizer == Tier::device || offload.ratio < 1) return 0;
  const double bytes =
      bytes_of(cut.state.precision.grad_accum_dtype) * parameters / (cut.t * cut.shard);
  const int sharing = std::min(cluster_.devices, cluster_.node_devices);
  const double added =
      cut.m > 1 ? kSumAccesses * bytes * sharing / cluster_.host_memory_bandwidth : 0;
  return kPicoseconds * std::max(bytes / cluster_.host.rate(), added);
}

double PlanBounds::update_time(const Cut& cut, double parameters) const {
  const double own = parameters / (cut.t * (cut.state.zero.stage == 0 ? 1 : cut.shard));
  const bool on_host = cut.state.offload.optimizer != Tier::device;
  const int sharing = std::min(cluster_.devices, cluster_.node_devices);  // the host's memory
  const double rate =
      on_host ? cluster_.host_memory_bandwidth / sharing : cluster_.device.memory_bandwidth;
  return kPicoseconds * kUpdateBytes * own / rate;
}

// Passes of a micro-batch through a stage, each no shorter than what is sent in it. Of a backward
// in halves the second multiplies and reduces, and takes no longer than the forward's products.
PlanBounds::PassTimes PlanBounds::passes_of(const Cut& cut, const LayerWork& work,
                                            std::int64_t index) const {
  const bool is_first = index == 0, is_last = index + 1 == cut.stages;
  const double layers = cut.layers_of(index);
  double backward = layers * work.backward;
  PassTimes times{.forward = layers * work.forward};
  times.weight =
      splits_backward(cut.schedule) ? std::min(backward, kWeightShare * times.forward) : 0;
  if (is_first) {
    times.forward += work.first_forward;
    backward += work.first_backward;
  }
  if (is_last) {
    times.forward += work.last_forward;
    backward += work.last_backward;
  }
  times.input = backward - times.weight;
  const double ends = (is_first ? embedding_ : 0) + (is_last ? head_ : 0);
  const int zero = cut.state.zero.stage;
  const double reduce = reduce_time(cut, layers * block_ + ends);
  const double copies = copies_time(cut, layers * block_ + ends);
  const double gather = zero == 3 ? gather_time(cut, layers * block_) : 0;
  if (zero == 3) {
    times.forward = std::max(times.forward, gather_time(cut, layers * block_ + ends));
  }
  // The half of a backward that reduces, and what else is sent in it.
  const bool halves = splits_backward(cut.schedule);
  if (halves) times.input = std::max(times.input, gather);
  double& reduces = halves ? times.weight : times.input;
  const double sent = (halves ? 0 : gather) + reduce;
  const double last = std::max(reduces, sent + copies);
  if (zero >= 2) {
    reduces = std::max(reduces, sent);
    times.reduced = sent;
  }
  reduces = std::max(reduces, host_time(cut, layers * block_ + ends));
  times.gathered = zero == 3 ? gather : 0;
  times.last = last - reduces;
  if (cut.stages > 1 && cluster_.device.software.reduces_last) times.last = 0;
  return times;
}

// A rank works for all its micro-batches. Before its first, the stages before it forward one, and
// after its last it goes back through them, unless weights come last; a first rank with no more on
// their way than the pipeline has ranks waits for as many rounds.
double PlanBounds::pipeline_time(const Cut& cut, const LayerWork& work) const {
  const PassTimes first = passes_of(cut, work, 0);
  if (cut.stages == 1) return cut.m * first.sum() + first.last;
  const std::int64_t rest = cut.layers % cut.stages, end = cut.p - 1;
  const PassTimes last = passes_of(cut, work, cut.stages - 1);
  const PassTimes less = cut.stages > 2 ? passes_of(cut, work, cut.stages - 2) : last;
  const PassTimes more = cut.stages > 2 && rest > 1 ? passes_of(cut, work, 1) : less;
  const auto passes_at = [&](std::int64_t stage) -> const PassTimes& {
    if (stage == 0) return first;
    if (stage + 1 == cut.stages) return last;
    return stage < rest ? more : less;
  };
  const auto time_of = [&](std::int64_t rank) {
    double sum = 0;
    for (std::int64_t chunk = 0; chunk < cut.v; ++chunk) {
      const PassTimes& passes = passes_at(cut.stage_of(rank, chunk));
      sum += cut.m * passes.sum() + passes.last;
    }
    return sum;
  };
  double there = 0, back = 0, reduced = 0;  // through the stages before the last rank's
  for (std::int64_t stage = 0; stage < end; ++stage) {
    const PassTimes& passes = passes_at(stage);
    there += passes.forward + cut.message;
    back += passes.input + cut.message;
    reduced += passes.last;
  }
  const bool returns = !splits_backward(cut.schedule);
  const double of_end = time_of(end);
  const double time = std::max(time_of(0), there + (returns ? back + reduced : 0) + of_end);
  const bool by_ranks = cut.v == 1 && (cut.schedule == PipelineKind::one_f_one_b ||
                                       cut.schedule == PipelineKind::zb_h1);
  if (!by_ranks) return time;
  const auto p = static_cast<double>(cut.p);
  const double rounds = std::floor((cut.m - 1) / p);
  const PassTimes& at_end = passes_at(end);
  const double round = there + back + at_end.forward + at_end.input;
  const double tail = there + (cut.m - rounds * p) * at_end.sum() + (returns ? back + reduced : 0);
  return std::max(time, rounds * round + tail);
}

// The update, and what outlasts the first forward of the weights' gathering.
double PlanBounds::beside_pipeline(const Cut& cut, const LayerWork& work) const {
  double time = update_time(cut, cut.layers_of_rank(0) * block_);
  const int stage = cut.state.zero.stage;
  if (stage == 1 || stage == 2) {
    const double layers = cut.layers_of(0);
    const double forward = layers * work.forward + work.first_forward;
    time += std::max(0.0, gather_time(cut, layers * block_) - forward);
  }
  return time;
}

double PlanBounds::least_time(const Cut& cut, const LayerWork& work) const {
  return pipeline_time(cut, work) + beside_pipeline(cut, work);
}

std::int64_t PlanBounds::time_by(const PipelineForm& form, const PlanPoint& point,
                                 const PlanSpace::Division& division, const LayerWork& work,
                                 std::int64_t left_out) const {
  const Cut cut = cut_of(point, division);
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  const bool halves = splits_backward(cut.schedule);
  std::vector<StageCosts> costs;
  for (std::int64_t stage = 0; stage < cut.stages; ++stage) {
    const PassTimes passes = passes_of(cut, work, stage);
    StageCosts own;
    const auto set = [&](StagePass pass, double time, double sent) {
      own.passes[static_cast<std::size_t>(pass)] = {whole(time), whole(sent)};
    };
    const double gathered = passes.gathered, reduced = passes.reduced, last = passes.last;
    set(StagePass::forward, passes.forward, gathered);
    set(StagePass::first_forward, passes.forward, gathered);
    set(StagePass::backward, passes.input, halves ? gathered : reduced);
    set(StagePass::last_backward, passes.input + (halves ? 0 : last), halves ? gathered : reduced);
    set(StagePass::weight, passes.weight, reduced);
    set(StagePass::last_weight, passes.weight + last, reduced);
    set(StagePass::whole_backward, passes.input + passes.weight, reduced);
    set(StagePass::last_whole_backward, passes.input + passes.weight + last, reduced);
    costs.push_back(own);
  }
  const std::vector<std::int64_t> hops(static_cast<std::size_t>(cut.p), whole(cut.message));
  return form.makespan(costs, hops, left_out) + whole(beside_pipeline(cut, work));
}

}  // namespace zl::sim
