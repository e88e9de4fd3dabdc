// Variations that cut model and data otherwise over the ranks.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/pipeline/pipeline.h"
#include "scenarios/planner/variation.h"

namespace zl {
namespace {

using Json = nlohmann::ordered_json;

// What lists stages is of so many as there were.
void forget_stages(Json& json) {
  json["x-zerolab"]["parallel"].erase("layers_per_stage");
  Json& own = json["x-zerolab"];
  const std::string recompute = own.value("recompute", "none");
  if (recompute.starts_with("blocks:") && recompute.find(',') != std::string::npos) {
    own["recompute"] = "auto";
  }
}

void set_mesh(Json& json, std::int64_t tensor, std::int64_t pipeline) {
  Json& parallel = json["x-zerolab"]["parallel"];
  if (parallel.is_null()) parallel = Json::object();
  if (pipeline != parallel.value("pipeline", std::int64_t{1})) forget_stages(json);
  parallel["tensor"] = tensor;
  parallel["pipeline"] = pipeline;
  for (const char* key : {"sequence_parallel", "tensor_overlap"}) {
    if (tensor == 1) parallel.erase(key);
  }
  if (pipeline > 1) return;
  for (const char* key : {"schedule", "virtual_stages"}) parallel.erase(key);
}

struct MeshSize {
  std::int64_t tensor = 1, pipeline = 1;

  bool operator==(const MeshSize&) const = default;
};

MeshSize size_of(const Strategy& strategy) {
  return {strategy.tensor.ranks, strategy.pipeline.ranks};
}

std::string text_of(MeshSize size) {
  return "tp" + std::to_string(size.tensor) + " pp" + std::to_string(size.pipeline);
}

Change mesh_change(const Strategy& strategy, MeshSize to) {
  const MeshSize from = size_of(strategy);
  return {text_of(to), "mesh " + text_of(from) + " → " + text_of(to), [from, to](Json& json) {
            set_mesh(json, to.tensor, to.pipeline);
            Json& micro_batches = json["gradient_accumulation_steps"];
            micro_batches = micro_batches.get<std::int64_t>() * to.tensor * to.pipeline /
                            (from.tensor * from.pipeline);
          }};
}

// More stages make fewer combinations worth trying; more blocks of micro-batches in a step of a
// pipeline, which are recorded one by one, take seconds each to try.
std::vector<MeshSize> meshes(const Study& study, const Strategy& strategy) {
  constexpr std::int64_t kLongest = 16, kMostBlocks = 2048;
  const std::int64_t ranks = study.scenario.run.ranks;
  const std::int64_t node = std::min<std::int64_t>(ranks, study.cluster.node_devices);
  const std::int64_t before = strategy.tensor.ranks * strategy.pipeline.ranks;
  std::vector<MeshSize> all;
  for (std::int64_t tensor = 1; tensor <= node; tensor *= 2) {
    const std::int64_t longest = std::min({ranks / tensor, study.scenario.model.layers, kLongest});
    for (std::int64_t pipeline = 1; pipeline <= longest; pipeline *= 2) {
      const std::int64_t micro_batches = strategy.gradient_accumulation * tensor * pipeline;
      if (micro_batches % before != 0) continue;
      const std::int64_t blocks = micro_batches / before * study.scenario.model.layers;
      if (pipeline > 1 && blocks > kMostBlocks) continue;
      all.push_back({tensor, pipeline});
    }
  }
  return all;
}

struct Scheduled {
  PipelineKind kind;
  std::int64_t chunks;  // on a rank
};
constexpr Scheduled kSchedules[] = {{PipelineKind::one_f_one_b, 1},
                                    {PipelineKind::interleaved, 2},
                                    {PipelineKind::zb_h1, 1},
                                    {PipelineKind::zb_v, 2}};

Change schedule_change(const Strategy& strategy, MeshSize size, const Scheduled& schedule) {
  const std::string name = name_of(schedule.kind);
  Change change = mesh_change(strategy, size);
  change.tag += " " + name;
  change.text = (size == size_of(strategy) ? "" : change.text + ", ") + "schedule → " + name;
  change.apply = [to_mesh = change.apply, name, chunks = schedule.chunks](Json& json) {
    to_mesh(json);
    Json& parallel = json["x-zerolab"]["parallel"];
    parallel["schedule"] = name;
    parallel["virtual_stages"] = chunks;
    forget_stages(json);
  };
  return change;
}

}  // namespace

Choices mesh_changes(const Study& study, const Strategy& strategy) {
  Choices changes;
  for (const MeshSize size : meshes(study, strategy)) {
    if (size != size_of(strategy)) changes.push_back(mesh_change(strategy, size));
  }
  return changes;
}

Choices schedule_changes(const Study& study, const Strategy& strategy) {
  Choices changes;
  for (const MeshSize size : meshes(study, strategy)) {
    for (const Scheduled& each : kSchedules) {
      // A mesh without a pipeline has none; the strategy's own comes with its mesh.
      if (size.pipeline == 1 || each.kind == strategy.pipeline.schedule) continue;
      if (size.pipeline * each.chunks > study.scenario.model.layers) continue;
      changes.push_back(schedule_change(strategy, size, each));
    }
  }
  return changes;
}

}  // namespace zl
