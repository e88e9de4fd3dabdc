// Text generated on a backend, or priced on a cluster without generating any.
// Ownership: values. Threads: on_token of the options is called on the thread of rank 0.
#pragma once

#include <memory>
#include <vector>

#include "core/device/world.h"
#include "core/inference/generation.h"
#include "core/model/sparse_attention_config.h"
#include "core/model/weight_source.h"
#include "core/train/run_result.h"
#include "scenarios/files/scenario.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl {

struct GenerationRequest {
  ModelConfig model;
  int ranks = 1;  // of a prediction: devices that have the model together
  std::shared_ptr<const WeightSource> weights;  // null: drawn by the seed
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  SparseAttentionConfig sparse = {};  // what the model was trained with; see block_window()
  std::vector<std::vector<std::int32_t>> prompts;
  GenerationOptions options;
};

// Memory and bytes are those of the first rank.
struct GenerationRun {
  Generated generated;  // of a prediction: the counts alone
  TaggedBytes peak;     // device memory by owner, at its highest
  std::int64_t reserved = 0;
  std::int64_t weight_bytes = 0;           // all that a step reads of them
  std::int64_t cache_bytes_per_token = 0;  // of each sequence, while no window is full
  // Seconds: the first tokens, and each step after; low and high: nine times out of ten, of a
  // prediction (else both the value).
  struct Time {
    double seconds = 0, low = 0, high = 0;
  };
  Time first_token, decode;  // decode: all steps after the first together
  std::string priced_from;   // of a prediction, as RunResult's
};

std::int64_t longest_prompt(const GenerationRequest& request);  // its tokens

// On the world's ranks, threads of this process that are one tensor group. Throws as Generator, and
// Error{invalid} for a prompt of more tokens than the model has positions; OutOfMemory where a
// limit is reached.
GenerationRun run_generation(World& world, const GenerationRequest& request);

// The same program recorded, and priced on as many devices of the cluster; tokens are not known, so
// no output ends before its limit. Rotary positions do not limit it, learned ones do.
GenerationRun predict_generation(const GenerationRequest& request, const sim::ClusterSpec& cluster);

}  // namespace zl
