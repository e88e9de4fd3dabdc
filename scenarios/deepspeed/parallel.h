// x-zerolab.parallel: how a model is cut over the ranks of a pipeline and of a tensor group.
// DeepSpeed says that in a program, not in its file. Ownership: values. Threads: pure functions of
// their keys.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

PipelineConfig build_pipeline(Keys& keys);
TensorConfig build_tensor(Keys& keys);
// The data-parallel ranks beside both, which batches are counted over. Rejects sizes that do not
// divide the ranks.
std::int64_t data_parallel_ranks(Keys& keys, const Strategy& strategy, std::int64_t ranks);
// Copies of ZeRO's shards, by parallel.replicate or MiCS's size of one; ranks: data-parallel ones.
std::int64_t build_replicas(Keys& keys, std::int64_t ranks);
// What copies of shards do not go with.
void check_replicas(Keys& keys, const Strategy& strategy);
// What parts of gathered weights do not go with (hpZ); ranks: data-parallel ones.
void check_secondary(Keys& keys, const Strategy& strategy, std::int64_t ranks);
// The optimizer that a tensor group needs.
void check_tensor_optimizer(Keys& keys, const Strategy& strategy);
// What a micro-batch count must be for the schedule.
void check_schedule(Keys& keys, const PipelineConfig& pipeline, std::int64_t micro_batches);

// Says at the section's rows which of DeepSpeed, Megatron-LM and torchtitan would not run it so:
// nothing is refused that works here. Once the stage is known.
void note_others(Keys& keys, const Strategy& strategy, const ModelConfig* model);

// The section with what is not the default; null without any.
Json parallel_json(const Strategy& strategy);

}  // namespace zl
