#include "scenarios/planner/plan_profiles.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/run/largest.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/stage_runs.h"
#include "simulator/cost/collective.h"
#include "simulator/processor_sharing.h"

namespace zl {
namespace {

// Ranks of the pipeline that is profiled: one of each place.
constexpr std::int64_t kProfiledRanks = 3;
// Micro-batches: a first, a usual one, and a last.
constexpr std::int64_t kProfiledMicroBatches = 3;

struct ShortRun {
  Recording recording;
  std::vector<sim::Timeline> timelines;

  std::vector<sim::RecordedStage> stages(std::int64_t group,
                                         const sim::ClusterSpec& cluster) const {
    constexpr sim::StagePlace kPlaces[] = {sim::StagePlace::first, sim::StagePlace::middle,
                                           sim::StagePlace::last};
    std::vector<sim::RecordedStage> all;
    const std::vector<StageRun> runs = stage_runs(recording, timelines);
    for (const StageRun& run : runs) {
      const sim::StagePlace place =
          runs.size() == 1 ? sim::StagePlace::whole : kPlaces[static_cast<std::size_t>(run.stage)];
      all.push_back({place,
                     group,
                     {&run.recording->trace, run.recording->ranks.ranks},
                     run.timeline,
                     &cluster});
    }
    return all;
  }
};

// A cluster of one node as one that takes `ranks`, each with the share of the host that it had.
sim::ClusterSpec with_node_of(sim::ClusterSpec cluster, std::int64_t ranks) {
  const double wider = static_cast<double>(ranks) / cluster.node_devices;
  cluster.devices = cluster.node_devices = static_cast<int>(ranks);
  cluster.host_memory = static_cast<std::int64_t>(wider * static_cast<double>(cluster.host_memory));
  cluster.host_memory_bandwidth *= wider;
  cluster.storage.bandwidth *= wider;
  return cluster;
}

const RecomputeConfig kPlainBlocks{}, kAgainBlocks{.mode = RecomputeMode::full};

}  // namespace

PlanProfiles::PlanProfiles(const Scenario& scenario, const sim::ClusterSpec& cluster,
                           const sim::PlanSpace& space)
    : scenario_(scenario), cluster_(cluster), space_(space), recomputations_(space.recompute) {
  for (const RecomputeConfig& each : {kPlainBlocks, kAgainBlocks}) {
    if (std::ranges::find(recomputations_, each) == recomputations_.end()) {
      recomputations_.push_back(each);
    }
  }
}

std::uint16_t PlanProfiles::number_of(const RecomputeConfig& recompute) const {
  const auto found = std::ranges::find(recomputations_, recompute);
  ZL_CHECK(found != recomputations_.end(), "a profile's recomputation is one of the space's");
  return static_cast<std::uint16_t>(found - recomputations_.begin());
}

std::array<std::uint16_t, 2> PlanProfiles::parts_of_mix() const {
  return {number_of(kPlainBlocks), number_of(kAgainBlocks)};
}

std::int64_t PlanProfiles::group_of(std::uint16_t recompute) const {
  const RecomputeConfig& config = recomputations_[recompute];
  return config.mode == RecomputeMode::every_k ? config.every : 1;
}

ProfileKey PlanProfiles::key_of(const sim::PlanPoint& point,
                                const sim::PlanSpace::Division& division,
                                std::uint16_t recompute) const {
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
      .recompute = recompute};
}

// What a profile with whole backwards beside those in halves is put together from.
std::array<ProfileKey, 2> PlanProfiles::parts_of(ProfileKey key) {
  key.has_whole_backwards = false;
  ProfileKey whole = key;
  whole.splits_backward = false;
  return {key, whole};
}

sim::StageProfiles PlanProfiles::record(const ProfileKey& key) const {
  Strategy strategy = space_.states[key.state];
  strategy.tensor.ranks = key.tensor;
  strategy.tensor.sequence_parallel = key.sequence_parallel;
  strategy.pipeline = {};
  const std::int64_t ranks = key.is_staged ? kProfiledRanks : 1;
  if (key.is_staged) {
    strategy.pipeline.ranks = ranks;
    strategy.pipeline.schedule =
        key.splits_backward ? PipelineKind::zb_h1 : PipelineKind::one_f_one_b;
  }
  strategy.zero.replicas = key.replicas;
  strategy.recompute = recomputations_[key.recompute];
  const std::int64_t group = group_of(key.recompute);
  strategy.micro_batch = key.micro_batch;
  strategy.gradient_accumulation = key.micro_batches;
  // A shorter pipeline than the profiled one may be within a node.
  const std::int64_t all = key.tensor * key.data * ranks;
  const bool leaves_node = space_.ranks <= cluster_.node_devices && all > cluster_.node_devices;
  const sim::ClusterSpec cluster = leaves_node ? with_node_of(cluster_, all) : cluster_;
  const sim::ClusterSpec at_work =
      sim::with_all_at_work(cluster);  // a short pipeline waits otherwise
  const auto record = [&](std::int64_t layers) {
    Scenario scenario = with_layers(scenario_, layers * group * ranks);
    scenario.run.ranks = all;
    scenario.run.steps = 2;
    DeviceProperties device = sim::device_properties(cluster);
    device.memory = device.host_memory = 0;
    ProgramOptions options = program_options(scenario);
    options.device_memory = options.host_memory = 0;
    options.hash_trace = false;
    ShortRun run{record_run(scenario, strategy, device, options), {}};
    run.timelines = sim::price(rank_traces(run.recording), at_work);
    return run;
  };
  const ShortRun single = record(1), several = record(sim::kProfiledLayers);
  return sim::profile_stages(single.stages(group, cluster), several.stages(group, cluster));
}

void PlanProfiles::prepare(const std::vector<DividedPoint>& points) {
  std::vector<ProfileKey> keys;
  for (const auto& [point, division] : points) {
    if (!space_.mixes(point)) {
      keys.push_back(key_of(point, division, point.recompute));
      continue;
    }
    for (const std::uint16_t part : parts_of_mix()) {
      keys.push_back(key_of(point, division, part));
    }
  }
  prepare(keys);
  prepare_forms(points);
}

void PlanProfiles::prepare(const std::vector<ProfileKey>& keys) {
  std::vector<ProfileKey> missing, put_together;
  for (const ProfileKey& key : keys) {
    if (profiles_.contains(key)) continue;
    if (!key.has_whole_backwards) {
      missing.push_back(key);
      continue;
    }
    put_together.push_back(key);
    for (const ProfileKey& part : parts_of(key)) {
      if (!profiles_.contains(part)) missing.push_back(part);
    }
  }
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::vector<std::unique_ptr<const sim::StageProfiles>> made(missing.size());
  on_all_cores(missing.size(), [&](std::size_t i) {
    made[i] = std::make_unique<const sim::StageProfiles>(record(missing[i]));
  });
  for (std::size_t i = 0; i < missing.size(); ++i) profiles_[missing[i]] = std::move(made[i]);
  for (const ProfileKey& key : put_together) {
    const auto [halves, whole] = parts_of(key);
    sim::StageProfiles both = *profiles_.at(halves);
    both.take_whole_backwards(*profiles_.at(whole));
    profiles_[key] = std::make_unique<const sim::StageProfiles>(std::move(both));
  }
}

sim::SteadyCount PlanProfiles::steady_count_of(const sim::PlanPoint& point,
                                               const sim::PlanSpace::Division& division) const {
  return sim::steady_count(space_.schedules[point.schedule], division.micro_batches,
                           space_.pipeline[point.pipeline]);
}

PlanProfiles::FormKey PlanProfiles::form_key(const sim::PlanPoint& point,
                                             const sim::PlanSpace::Division& division) const {
  return {space_.pipeline[point.pipeline], space_.chunks[point.chunks],
          steady_count_of(point, division).micro_batches, space_.schedules[point.schedule]};
}

void PlanProfiles::prepare_forms(const std::vector<DividedPoint>& points) {
  std::vector<FormKey> missing;
  for (const auto& [point, division] : points) {
    const FormKey key = form_key(point, division);
    if (key.pipeline > 1 && !forms_.contains(key)) missing.push_back(key);
  }
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::vector<std::unique_ptr<const Form>> made(missing.size());
  on_all_cores(missing.size(), [&](std::size_t i) {
    const FormKey& key = missing[i];
    const PipelineConfig config{
        .ranks = key.pipeline, .virtual_stages = key.chunks, .schedule = key.schedule};
    const std::int64_t stages = key.pipeline * key.chunks;
    std::vector<std::int64_t> layers =
        split_layers(scenario_.model, static_cast<int>(stages), space_.split(stages));
    made[i] = std::make_unique<const Form>(
        Form{sim::PipelineForm(config, key.micro_batches), std::move(layers)});
  });
  for (std::size_t i = 0; i < missing.size(); ++i) forms_[missing[i]] = std::move(made[i]);
}

const sim::StageProfiles* PlanProfiles::find(const ProfileKey& key) const {
  const auto found = profiles_.find(key);
  return found == profiles_.end() ? nullptr : found->second.get();
}

// Picoseconds of a message from each rank of a pipeline to the next, from the last to the first.
sim::PipelineLinks PlanProfiles::links_of(const sim::StageProfiles& profiles,
                                          std::int64_t pipeline) const {
  const auto stride = static_cast<int>(space_.ranks / pipeline);
  const auto ranks = static_cast<int>(pipeline);
  const auto message = [&](std::int64_t bytes, int from, int to) {
    return static_cast<std::int64_t>(
        1e12 * sim::message_seconds(bytes, from * stride, to * stride, cluster_));
  };
  sim::PipelineLinks links;
  for (int hop = 0; hop < ranks; ++hop) {
    links.hops.push_back(message(profiles.message, hop, (hop + 1) % ranks));
  }
  if (profiles.exchanged > 0) links.exchange = message(profiles.exchanged, 0, ranks - 1);
  return links;
}

PlanProfiles::FormOf PlanProfiles::form_of(const sim::PlanPoint& point,
                                           const sim::PlanSpace::Division& division) const {
  if (space_.pipeline[point.pipeline] == 1) return {};
  const auto found = forms_.find(form_key(point, division));
  if (found == forms_.end()) return {};
  return {&found->second->form, steady_count_of(point, division).left_out};
}

}  // namespace zl
