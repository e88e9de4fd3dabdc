#include "simulator/planner/plan_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/model/parameters.h"
#include "simulator/cost/collective.h"

namespace zl::sim {
namespace {

// Products for the gradients of weights take no longer than so many forwards.
constexpr double kWeightShare = 1.1;

double parameters_of_unit(const ParameterTable& table, int unit) {
  double sum = 0;
  for (const ParameterSpec& spec : table.specs) {
    if (spec.unit == unit) sum += static_cast<double>(spec.count());
  }
  return sum;
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

PlanBounds::PlanBounds(const ModelConfig& model, const ClusterSpec& cluster, const PlanSpace& space,
                       std::int64_t sequence_length)
    : model_(model),
      cluster_(cluster),
      prices_(cluster),
      space_(space),
      sequence_(sequence_length) {
  const ParameterTable table(model);
  block_ = parameters_of_unit(table, 1);
  embedding_ = parameters_of_unit(table, 0);
  head_ = parameters_of_unit(table, table.head_unit());
  // A rank of its own has a copy.
  const bool copies = table.tied() && space.pipeline.back() > 1;
  if (copies) head_ += static_cast<double>(model.vocab * model.hidden);
}

// Bytes of a message that one stage leaves for the next.
std::int64_t PlanBounds::message_bytes(const PlanPoint& point) const {
  const std::int64_t cut =
      space_.sequence_parallel[point.sequence_parallel] ? space_.tensor[point.tensor] : 1;
  return space_.micro_batch[point.micro_batch] * sequence_ * model_.hidden *
         size_of(space_.states[point.state].precision.compute_dtype) / cut;
}

PlanBound PlanBounds::of(const PlanPoint& point, const PlanSpace::Division& division,
                         const StageWorks& works) const {
  const PlanCut cut = plan_cut(space_, model_.layers, point, division);
  const double message = prices_.message(cut, message_bytes(point));
  return {least_memory(cut, works), static_cast<std::int64_t>(least_time(cut, works, message))};
}

std::int64_t PlanBounds::least_memory(const PlanCut& cut, const StageWorks& works) const {
  const auto p = static_cast<double>(cut.p), v = static_cast<double>(cut.v);
  const double chunk = std::floor(static_cast<double>(cut.layers) / (p * v));
  const double in_flight = cut.p == 1 ? 1 : most_in_flight(cut.schedule, p, v, cut.m);
  // A layer's weights are there where it runs.
  const bool gathers = cut.state.zero.stage == 3 || cut.state.offload.parameters != Tier::device;
  const double window = gathers ? bytes_of(cut.state.precision.compute_dtype) * block_ / cut.t : 0;
  const double first = state_bytes(cut, 0, embedding_) +
                       in_flight * (cut.p == 1 ? static_cast<double>(cut.layers) : chunk) *
                           static_cast<double>(works.first.kept) +
                       window;
  const std::int64_t end = is_v(cut.schedule) ? 0 : cut.p - 1;
  const double last =
      state_bytes(cut, end, cut.p > 1 ? head_ : 0) + static_cast<double>(works.least.last_peak) +
      (cut.p > 1 ? chunk : static_cast<double>(cut.layers)) * static_cast<double>(works.least.kept);
  return static_cast<std::int64_t>(std::max(first, last));
}

// Passes of a micro-batch through a stage, each no shorter than what is sent in it. Of a backward
// in halves the second multiplies and reduces, and takes no longer than the forward's products.
PlanBounds::PassTimes PlanBounds::passes_of(const PlanCut& cut, const StageWorks& works,
                                            std::int64_t index) const {
  const bool is_first = index == 0, is_last = index + 1 == cut.stages;
  const LayerWork& work = works.of(index);
  const double layers = cut.layers_of(index);
  double backward = layers * work.backward;
  PassTimes times{.forward = layers * work.forward};
  const bool halves = splits_backward(cut.schedule);
  times.weight = halves ? std::min(backward, kWeightShare * times.forward) : 0;
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
  const double reduce = prices_.reduce(cut, layers * block_ + ends);
  const double copies = prices_.average_copies(cut, layers * block_ + ends);
  const double gather = zero == 3 ? prices_.gather(cut, layers * block_) : 0;
  if (zero == 3) {
    times.forward = std::max(times.forward, prices_.gather(cut, layers * block_ + ends));
  }
  // The half of a backward that reduces, and what else is sent in it.
  if (halves) times.input = std::max(times.input, gather);
  double& reduces = halves ? times.weight : times.input;
  const double sent = (halves ? 0 : gather) + reduce;
  const double last = std::max(reduces, sent + copies);
  if (zero >= 2) {
    reduces = std::max(reduces, sent);
    times.reduced = sent;
  }
  times.hosted = prices_.to_host(cut, layers * block_ + ends);
  times.gathered = zero == 3 ? gather : 0;
  times.last = last - reduces;
  if (cut.stages > 1 && cluster_.device.software.reduces_last) times.last = 0;
  return times;
}

// A rank works for all its micro-batches. Before its first, the stages before it forward one, and
// after its last it goes back through them, unless weights come last; a first rank with no more on
// their way than the pipeline has ranks waits for as many rounds.
double PlanBounds::pipeline_time(const PlanCut& cut, const StageWorks& works,
                                 double message) const {
  const PassTimes first = passes_of(cut, works, 0);
  // Those of a step's first micro-batch are not added to others.
  const double hosts = std::max(1.0, cut.m - 1);
  if (cut.stages == 1) return std::max(cut.m * first.sum() + first.last, hosts * first.hosted);
  const std::int64_t rest = cut.rest(), end = cut.p - 1;
  const PassTimes last = passes_of(cut, works, cut.stages - 1);
  const PassTimes less = cut.stages > 2 ? passes_of(cut, works, cut.stages - 2) : last;
  const PassTimes more = cut.stages > 2 && rest > 1 ? passes_of(cut, works, 1) : less;
  const auto passes_at = [&](std::int64_t stage) -> const PassTimes& {
    if (stage == 0) return first;
    if (stage + 1 == cut.stages) return last;
    return stage < rest ? more : less;
  };
  const auto time_of = [&](std::int64_t rank) {
    double sum = 0, hosted = 0;
    for (std::int64_t chunk = 0; chunk < cut.v; ++chunk) {
      const PassTimes& passes = passes_at(cut.stage_of(rank, chunk));
      sum += cut.m * passes.sum() + passes.last;
      hosted += hosts * passes.hosted;
    }
    return std::max(sum, hosted);
  };
  double there = 0, back = 0,
         reduced = 0;  // through the stages before the last rank's
  for (std::int64_t stage = 0; stage < end; ++stage) {
    const PassTimes& passes = passes_at(stage);
    there += passes.forward + message;
    back += passes.input + message;
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
double PlanBounds::beside_pipeline(const PlanCut& cut, const StageWorks& works) const {
  double time = prices_.update(cut, cut.layers_of_rank(0) * block_);
  const int stage = cut.state.zero.stage;
  if (stage == 1 || stage == 2) {
    const double layers = cut.layers_of(0);
    const double forward = layers * works.first.forward + works.first.first_forward;
    time += std::max(0.0, prices_.gather(cut, layers * block_) - forward);
  }
  return time;
}

double PlanBounds::least_time(const PlanCut& cut, const StageWorks& works, double message) const {
  return least_pace(cut) * pipeline_time(cut, works, message) + beside_pipeline(cut, works);
}

double PlanBounds::least_pace(const PlanCut& cut) const {
  const SharedCores cores = shared_cores(cluster_);
  const bool may_wait = cut.p > 1;
  return may_wait && cores.matter() ? static_cast<double>(cores.cores) / cores.ranks : 1;
}

std::int64_t PlanBounds::time_by(const PipelineForm& form, const PlanPoint& point,
                                 const PlanSpace::Division& division, const StageWorks& works,
                                 std::int64_t left_out) const {
  const PlanCut cut = plan_cut(space_, model_.layers, point, division);
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  const bool halves = splits_backward(cut.schedule);
  std::vector<StageCosts> costs;
  // Each pass sends while it computes, and leaves the host its gradients.
  std::vector<std::array<PassWork, 5>> sent_in;
  sent_in.reserve(static_cast<std::size_t>(cut.stages) * kStagePasses);
  for (std::int64_t stage = 0; stage < cut.stages; ++stage) {
    const PassTimes passes = passes_of(cut, works, stage);
    StageCosts own;
    const auto set = [&](StagePass pass, double time, double sent, double hosted = 0) {
      constexpr StreamId kSends = StreamId::communication, kHost = StreamId::host;
      sent_in.push_back({PassWork{.kind = PassWork::Kind::follow, .stream = kSends},
                         PassWork{.stream = kSends, .time = whole(sent)},
                         PassWork{.time = whole(time)},
                         PassWork{.kind = PassWork::Kind::follow, .stream = kHost},
                         PassWork{.stream = kHost, .time = whole(hosted)}});
      const std::size_t first = sent > 0 ? 0 : 2, end = hosted > 0 ? 5 : 3;
      own.passes[static_cast<std::size_t>(pass)].add(
          std::span(sent_in.back()).subspan(first, end - first), 1, 0);
    };
    const double gathered = passes.gathered, reduced = passes.reduced, last = passes.last;
    const double hosted = passes.hosted, sent = halves ? gathered : reduced;
    const double whole_time = passes.input + passes.weight;
    set(StagePass::forward, passes.forward, gathered);
    set(StagePass::first_forward, passes.forward, gathered);
    set(StagePass::backward, passes.input, sent, halves ? 0 : hosted);
    set(StagePass::first_backward, passes.input, sent);
    set(StagePass::last_backward, passes.input + (halves ? 0 : last), sent, halves ? 0 : hosted);
    set(StagePass::weight, passes.weight, reduced, hosted);
    set(StagePass::first_weight, passes.weight, reduced);
    set(StagePass::last_weight, passes.weight + last, reduced, hosted);
    set(StagePass::whole_backward, whole_time, reduced, hosted);
    set(StagePass::first_whole_backward, whole_time, reduced);
    set(StagePass::last_whole_backward, whole_time + last, reduced, hosted);
    costs.push_back(own);
  }
  const std::vector<std::int64_t> hops(static_cast<std::size_t>(cut.p),
                                       whole(prices_.message(cut, message_bytes(point))));
  const auto ends = form.ends({.stages = costs,
                               .hops = hops,
                               .left_out = left_out,
                               .messages_apart = cluster_.device.software.message_stream,
                               .reduces_last = cluster_.device.software.reduces_last});
  const auto longest = static_cast<double>(*std::ranges::max_element(ends));
  return whole(least_pace(cut) * longest) + whole(beside_pipeline(cut, works));
}

}  // namespace zl::sim
