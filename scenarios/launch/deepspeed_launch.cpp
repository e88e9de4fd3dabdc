#include "scenarios/launch/deepspeed_launch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/obstacles.h"

namespace zl {
namespace {

void check_deepspeed(const Strategy& strategy, Obstacles& obstacles) {
  if (strategy.tensor.ranks > 1) {
    obstacles.add("tensor parallelism of " + std::to_string(strategy.tensor.ranks) + " ranks",
                  "DeepSpeed's file has AutoTP alone, which leaves vocabulary and sequences whole",
                  "tensor=1");
  }
  if (strategy.pipeline.ranks > 1) {
    obstacles.add("a pipeline of " + std::to_string(strategy.pipeline.ranks) + " ranks",
                  "DeepSpeed takes it from a program (PipelineModule), not from its file",
                  "pipeline=1");
  }
  if (strategy.zero.replicas > 1) {
    obstacles.add(std::to_string(strategy.zero.replicas) + " copies of shards",
                  "DeepSpeed 0.19.8 refuses mics_shard_size: it has removed MiCS", "replicate=1");
  }
  const RecomputeMode mode = strategy.recompute.mode;
  if (mode != RecomputeMode::none && mode != RecomputeMode::full) {
    obstacles.add("recompute " + recompute_text(strategy.recompute),
                  "a program under DeepSpeed checkpoints whole layers", "recompute=full");
  }
}

Json launch_json(const Strategy& strategy, const LaunchFacts& facts) {
  Json launch = {{"model", facts.model.name},
                 {"sequence_length", facts.sequence_length},
                 {"num_nodes", facts.nodes()},
                 {"num_gpus", std::min(facts.ranks, facts.node_devices)}};
  if (strategy.recompute.mode == RecomputeMode::full) {
    launch["program"] = "model.gradient_checkpointing_enable()";
  }
  return launch;
}

}  // namespace

LaunchFile write_deepspeed(const Strategy& strategy, const LaunchFacts& facts) {
  Obstacles obstacles("deepspeed");
  check_deepspeed(strategy, obstacles);
  obstacles.throw_if_any();
  const Json canonical = strategy_to_json(strategy);
  Json json = {{"train_batch_size", facts.global_batch(strategy)}};
  json.update(canonical);
  json["x-zerolab"].erase("parallel");
  json["x-zerolab"]["launch"] = launch_json(strategy, facts);
  LaunchFile file;
  file.text = to_text(json, 2) + "\n";
  if (strategy.recompute.mode == RecomputeMode::full) {
    file.notes.emplace_back(
        "no key of DeepSpeed's recomputes layers: the program calls "
        "model.gradient_checkpointing_enable()");
  }
  return file;
}

}  // namespace zl
