#include "scenarios/planner/plan_profiles.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/run/largest.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/stage_runs.h"
#include "simulator/cost/collective.h"

namespace zl {
namespace {

// Ranks of the pipeline that is profiled: one of each place.
constexpr std::int64_t kProfiledRanks = 3;
// Micro-batches: a first, a usual one, and a last.
constexpr std::int64_t kProfiledMicroBatches = 3;

struct ShortRun {
  Recording recording;
  std::vector<sim::Timeline> timelines;

  std::vector<sim::RecordedStage> stages(std::int64_t layers) const {
    constexpr sim::StagePlace kPlaces[] = {sim::StagePlace::first, sim::StagePlace::middle,
                                           sim::StagePlace::last};
    std::vector<sim::RecordedStage> all;
    const std::vector<StageRun> runs = stage_runs(recording, timelines);
    for (const StageRun& run : runs) {
      const sim::StagePlace place =
          runs.size() == 1 ? sim::StagePlace::whole : kPlaces[static_cast<std::size_t>(run.stage)];
      all.push_back(
          {place, layers, {&run.recording->trace, run.recording->ranks.ranks}, run.timeline});
    }
    return all;
  }
};

// A cluster of one node as one that takes `ranks`, each with the share of the host that it had.
sim::ClusterSpec with_node_of(sim::ClusterSpec cluster, std::int64_t ranks) {
  const double wider = static_cast<double>(ranks) / cluster.node_devices;
  cluster.node_devices = static_cast<int>(ranks);
  cluster.host_memory = static_cast<std::int64_t>(wider * static_cast<double>(cluster.host_memory));
  cluster.host_memory_bandwidth *= wider;
  cluster.storage.bandwidth *= wider;
  return cluster;
}

}  // namespace

ProfileKey PlanProfiles::key_of(const sim::PlanPoint& point,
                                const sim::PlanSpace::Division& division) const {
  const bool staged = space_.pipeline[point.pipeline] > 1;
  return {
      .tensor = space_.tensor[point.tensor],
      .data = division.data,
      .replicas = space_.replicas[point.replicas],
      .micro_batch = space_.micro_batch[point.micro_batch],
      .micro_batches = std::min(division.micro_batches, kProfiledMicroBatches),
      .sequence_parallel = space_.sequence_parallel[point.sequence_parallel],
      .is_staged = staged,
      .splits_backward = staged && splits_backward(space_.schedules[point.schedule]),
      .has_whole_backwards = staged && space_.schedules[point.schedule] == PipelineKind::dualpipe_v,
      .state = point.state,
      .recompute = point.recompute};
}

sim::StageProfiles PlanProfiles::make(const ProfileKey& key) const {
  sim::StageProfiles profiles = record(key);
  if (key.has_whole_backwards) {
    ProfileKey whole = key;
    whole.splits_backward = false;
    profiles.take_whole_backwards(record(whole));
  }
  return profiles;
}

sim::StageProfiles PlanProfiles::record(const ProfileKey& key) const {
  Strategy strategy = space_.states[key.state];
  strategy.tensor = {.ranks = key.tensor, .sequence_parallel = key.sequence_parallel};
  strategy.pipeline = {};
  const std::int64_t ranks = key.is_staged ? kProfiledRanks : 1;
  if (key.is_staged) {
    strategy.pipeline.ranks = ranks;
    strategy.pipeline.schedule =
        key.splits_backward ? PipelineKind::zb_h1 : PipelineKind::one_f_one_b;
  }
  strategy.zero.replicas = key.replicas;
  strategy.recompute = space_.recompute[key.recompute];
  strategy.micro_batch = key.micro_batch;
  strategy.gradient_accumulation = key.micro_batches;
  // A shorter pipeline than the profiled one may be within a node.
  const std::int64_t all = key.tensor * key.data * ranks;
  const bool leaves_node = space_.ranks <= cluster_.node_devices && all > cluster_.node_devices;
  const sim::ClusterSpec cluster = leaves_node ? with_node_of(cluster_, all) : cluster_;
  const auto record = [&](std::int64_t layers) {
    Scenario scenario = with_layers(scenario_, layers * ranks);
    scenario.run.ranks = all;
    scenario.run.steps = 2;
    DeviceProperties device = sim::device_properties(cluster);
    device.memory = device.host_memory = 0;
    ProgramOptions options = program_options(scenario);
    options.device_memory = options.host_memory = 0;
    options.hash_trace = false;
    ShortRun run{record_run(scenario, strategy, device, options), {}};
    run.timelines = sim::price(rank_traces(run.recording), cluster);
    return run;
  };
  const ShortRun single = record(1), several = record(sim::kProfiledLayers);
  return sim::profile_stages(single.stages(1), several.stages(sim::kProfiledLayers));
}

void PlanProfiles::prepare(const std::vector<ProfileKey>& keys) {
  std::vector<ProfileKey> missing;
  for (const ProfileKey& key : keys) {
    if (!profiles_.contains(key)) missing.push_back(key);
  }
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::vector<std::unique_ptr<const sim::StageProfiles>> made(missing.size());
  on_all_cores(missing.size(), [&](std::size_t i) {
    made[i] = std::make_unique<const sim::StageProfiles>(make(missing[i]));
  });
  for (std::size_t i = 0; i < missing.size(); ++i) profiles_[missing[i]] = std::move(made[i]);
}

PlanProfiles::FormKey PlanProfiles::form_key(const sim::PlanPoint& point,
                                             std::int64_t micro_batches) const {
  return {space_.pipeline[point.pipeline], space_.chunks[point.chunks], micro_batches,
          space_.schedules[point.schedule]};
}

void PlanProfiles::prepare_forms(
    const std::vector<std::pair<sim::PlanPoint, std::int64_t>>& points) {
  std::vector<FormKey> missing;
  for (const auto& [point, micro_batches] : points) {
    const FormKey key = form_key(point, micro_batches);
    if (key.pipeline > 1 && !forms_.contains(key)) missing.push_back(key);
  }
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::vector<std::unique_ptr<const Form>> made(missing.size());
  on_all_cores(missing.size(), [&](std::size_t i) {
    const FormKey& key = missing[i];
    const PipelineConfig config{
        .ranks = key.pipeline, .virtual_stages = key.chunks, .schedule = key.schedule};
    std::vector<std::int64_t> layers =
        even_split(scenario_.model.layers, static_cast<int>(key.pipeline * key.chunks));
    made[i] = std::make_unique<const Form>(
        Form{sim::PipelineForm(config, key.micro_batches), std::move(layers)});
  });
  for (std::size_t i = 0; i < missing.size(); ++i) forms_[missing[i]] = std::move(made[i]);
}

const sim::StageProfiles* PlanProfiles::find(const ProfileKey& key) const {
  const auto found = profiles_.find(key);
  return found == profiles_.end() ? nullptr : found->second.get();
}

std::optional<sim::ClosedForm> PlanProfiles::closed_form(
    const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const {
  const sim::StageProfiles* profiles = find(key_of(point, division));
  if (profiles == nullptr) return std::nullopt;
  const std::int64_t pipeline = space_.pipeline[point.pipeline];
  if (pipeline == 1) {
    return sim::closed_form(*profiles, scenario_.model.layers, division.micro_batches);
  }
  const auto form = forms_.find(form_key(point, division.micro_batches));
  if (form == forms_.end()) return std::nullopt;
  const auto stride = static_cast<int>(space_.ranks / pipeline);
  double message = 0;  // of all hops
  for (int hop = 0; hop + 1 < static_cast<int>(pipeline); ++hop) {
    message += sim::message_seconds(profiles->message, hop * stride, (hop + 1) * stride, cluster_);
  }
  const auto each = static_cast<std::int64_t>(1e12 * message / static_cast<double>(pipeline - 1));
  sim::ClosedForm found =
      sim::closed_form(*profiles, form->second->form, form->second->layers, each);
  // Gathers reach into the next micro-batch, and buckets of several stages mix on their way to the
  // host.
  const Strategy& state = space_.states[point.state];
  const bool mixes = state.zero.stage == 3 || (state.zero.stage == 2 && state.offload.any() &&
                                               space_.chunks[point.chunks] > 1);
  found.is_exact = found.is_exact && !mixes;
  return found;
}

const sim::PipelineForm* PlanProfiles::form_of(const sim::PlanPoint& point,
                                               const sim::PlanSpace::Division& division) const {
  if (space_.pipeline[point.pipeline] == 1) return nullptr;
  const auto found = forms_.find(form_key(point, division.micro_batches));
  return found == forms_.end() ? nullptr : &found->second->form;
}

}  // namespace zl
