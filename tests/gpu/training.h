// Training runs of the program `zerolab` and what the parts derive from them.
// Ownership: values. Threads: one thread.
#pragma once

#include <span>
#include <string>

#include "core/model/model_config.h"
#include "tests/gpu/report.h"

namespace zl::gpu {

struct TrainingShape {
  const char* name;   // in the figures
  const char* model;  // of the catalogue
  std::int64_t sequence;
  double goal, aim;  // MFU on an H200
};

// GPT-2 at T = 1024, and the shape of TinyLlama 1.1B at T = 4096.
inline constexpr TrainingShape kTrainingShapes[] = {
    {"gpt2-124m", "gpt2-124m", 1024, 0.42, 0.50},
    {"gpt2-355m", "gpt2-355m", 1024, 0.48, 0.53},
    {"gpt2-1.5b", "gpt2-1.5b", 1024, 0.54, 0.59},
    {"llama-1b", "tinyllama-1.1b", 4096, 0.55, 0.60}};

// For runs that measure nothing.
inline constexpr TrainingShape kTinyTrainingShapes[] = {{"tiny gpt2", "gpt2-tiny", 16, 0, 0},
                                                        {"tiny llama", "llama-tiny", 16, 0, 0}};
inline std::span<const TrainingShape> training_shapes(bool tiny) {
  if (tiny) return kTinyTrainingShapes;
  return kTrainingShapes;
}

// 6 N + 6 L C T: dense training FLOPs of a token, the causal half of attention counted.
double flops_per_token(const ModelConfig& model, std::int64_t sequence);

// Dense bf16 FLOP/s of the data sheet of a GPU as machine_facts() names it; 0: not in the
// catalogue.
double nominal_bf16_peak(const Json& device);

// One result of `zerolab run`: bf16, ZeRO-0 on one rank, synthetic data. `more`: further options.
// Throws Error{failed} when the program fails or takes too long; out of memory is a result.
Json run_zerolab(const std::string& program, const TrainingShape& shape, const std::string& backend,
                 std::int64_t batch, int steps, double seconds,
                 const std::vector<std::string>& more = {});

}  // namespace zl::gpu
