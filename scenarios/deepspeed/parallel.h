// x-zerolab.parallel: how a model is cut over a pipeline of ranks. DeepSpeed says that in a
// program, not in its file. Ownership: values. Threads: pure functions of their keys.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

PipelineConfig build_pipeline(Keys& keys);
// The data-parallel ranks under it, which batches are counted over. Rejects a pipeline that does
// not divide the ranks.
std::int64_t data_parallel_ranks(Keys& keys, const PipelineConfig& pipeline, std::int64_t ranks);
// What a micro-batch count must be for the schedule.
void check_schedule(Keys& keys, const PipelineConfig& pipeline, std::int64_t micro_batches);

// Says at the section's rows which of DeepSpeed, Megatron-LM and torchtitan would not run it so:
// nothing is refused that works here. Once the stage is known.
void note_others(Keys& keys, const Strategy& strategy, const ModelConfig* model);

// The section with what is not the default; null without a pipeline.
Json parallel_json(const PipelineConfig& pipeline);

}  // namespace zl
