// The runs that are compared with PyTorch: tiny models, fixed tokens, one training recipe.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_config.h"
#include "core/train/strategy.h"
#include "core/zero/engine.h"

namespace zl::parity {

inline constexpr std::int64_t kSteps = 50;
inline constexpr std::int64_t kBatch = 4;  // sequences per step, over all ranks
inline constexpr std::int64_t kSequence = 32;
inline constexpr std::uint64_t kSeed = 1234;

// A GPT-2, a Llama with grouped-query attention, and a Qwen2 (Llama with qkv bias and tied
// embeddings); kBatch sequences of bytes each step.
std::vector<ModelConfig> models();

// AdamW (betas 0.9 and 0.95, decay 0.1), linear warm-up over 10 steps to 3e-3, clipping at 1.
Strategy recipe(int ranks, int stage, DType compute_dtype);

// kBatch rows of kSequence + 1 byte tokens; inputs are the first kSequence of a row, targets the
// last.
std::vector<std::int32_t> tokens_of_step(std::int64_t step);

// A safetensors file: the engine's parameters under their names, `tokens` [kSteps, kBatch,
// kSequence + 1], and as metadata what a reader needs to rebuild the model. Every rank must call
// it, rank 0 with a path, the others with none.
void write_initial(Engine& engine, const ModelConfig& model, const std::string& path);

// Hexadecimal SHA-256 (FIPS 180-4).
std::string sha256(const std::string& bytes);

}  // namespace zl::parity
