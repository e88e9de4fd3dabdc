#include "core/model/tensor_model.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace zl {
namespace {

void require_divides(const char* what, std::int64_t size, std::int64_t ranks) {
  if (size % ranks == 0) return;
  throw Error(ErrorCode::invalid, "parallel.tensor: " + std::to_string(ranks) +
                                      " does not divide the model's " + std::to_string(size) + " " +
                                      what + "; use " + nearest_divisors(size, ranks));
}

}  // namespace

void check_tensor(const ModelConfig& model, const TensorConfig& config,
                  std::int64_t sequence_length) {
  const std::int64_t ranks = config.ranks;
  if (ranks == 1) return;
  require_divides("attention heads", model.heads, ranks);
  require_divides("MLP columns", model.ffn, ranks);
  if (model.kv_heads % ranks != 0 && ranks % model.kv_heads != 0) {
    throw Error(ErrorCode::invalid, "parallel.tensor: " + std::to_string(ranks) +
                                        " is neither a divisor nor a multiple of the model's " +
                                        std::to_string(model.kv_heads) + " kv heads; use " +
                                        nearest_divisors(model.kv_heads, ranks));
  }
  if (config.sequence_parallel && sequence_length % ranks != 0) {
    throw Error(ErrorCode::invalid,
                "parallel.sequence_parallel: sequences of " + std::to_string(sequence_length) +
                    " are not cut in " + std::to_string(ranks) +
                    " equal parts; use --sequence-length " +
                    std::to_string(std::max(ranks, sequence_length / ranks * ranks)) +
                    " or no sequence parallelism");
  }
}

ModelConfig shard_of(const ModelConfig& model, const TensorShard& shard) {
  ModelConfig part = model;
  part.heads /= shard.ranks;
  part.kv_heads = std::max<std::int64_t>(1, model.kv_heads / shard.ranks);
  part.ffn /= shard.ranks;
  part.vocab = (model.vocab + shard.ranks - 1) / shard.ranks;
  return part;
}

int kv_copies(const ModelConfig& model, const TensorShard& shard) {
  return std::max(1, shard.ranks / static_cast<int>(std::max<std::int64_t>(1, model.kv_heads)));
}

}  // namespace zl
