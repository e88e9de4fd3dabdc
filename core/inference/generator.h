// Text from a model: a forward alone, whose attention sees a cache of what came before.
// Ownership: refers to the rank's context; owns weights and cache. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/model/kv_cache.h"
#include "core/model/stage.h"
#include "core/model/tensor_group.h"
#include "core/zero/weight_store.h"

namespace zl {

struct GeneratorOptions {
  DType dtype = DType::f32;  // of weights, cache and logits
  int sequences = 1;         // at once
  // As which layout the model attends: those that are no window of blocks are not known here.
  BlockWindow blocks = {};
  std::int64_t capacity = 0;  // tokens of a sequence, prompt and output together; 0: the model's
};

// One model on one rank, or cut over the ranks of a tensor group (Axis::tensor of the context's
// mesh), which all do the same and have the same logits; several sequences at once, each of its own
// length. Rotary positions that stretch with the length (dynamic, longrope) do so from the next
// token on: keys of the cache keep the base that they were made with, as in transformers.
class Generator final : private ParameterAccess {
 public:
  // Throws Error{invalid} for a capacity beyond learned positions and for a model that the ranks
  // cannot cut (check_tensor), OutOfMemory.
  Generator(RankContext& context, const ModelConfig& model, const GeneratorOptions& options,
            const InitialWeights& initial);
  ~Generator() override;

  // Tokens that follow what a sequence has.
  struct Extension {
    int sequence = 0;
    std::span<const std::int32_t> tokens;  // at least one
  };
  // Adds to sequences, each at most once, in one forward: prompts (prefill) and single tokens
  // (decode) alike. Error{invalid} where one does not fit its capacity.
  // Returns [extensions, vocab]: of each its last token's logits, as fp32; on the recording device
  // they are zeros.
  std::vector<std::vector<float>> extend(std::span<const Extension> extensions);
  // The same for one sequence: the logits of all its new tokens.
  std::vector<std::vector<float>> extend_all(int sequence, std::span<const std::int32_t> tokens);
  // What is traced from here on belongs to this step.
  void begin_step(int step) { context_.scope().step = step; }
  // Forgets a sequence, so that another prompt may take its place.
  void clear(int sequence) { lengths_[static_cast<std::size_t>(sequence)] = 0; }

  std::int64_t length(int sequence) const { return lengths_[static_cast<std::size_t>(sequence)]; }
  std::int64_t capacity() const { return cache_->capacity(); }
  const ModelConfig& model() const { return model_; }            // the whole
  const ModelConfig& rank_model() const { return rank_model_; }  // what this rank has of it
  std::int64_t parameters() const { return table_.count(); }     // of this rank

 private:
  void enter(int unit, Pass pass) override { weights_->enter(unit, pass); }
  void leave(int unit, Pass pass) override { weights_->leave(unit, pass); }
  TensorView weight(int parameter) override { return weights_->weight(parameter); }
  GradientTarget gradient(int parameter) override;  // there are none
  void gradient_ready(int parameter) override;
  CacheExtension plan(std::span<const Extension> extensions);
  std::vector<std::vector<float>> run(const CacheExtension& extension,
                                      std::vector<std::int32_t> tokens,
                                      const std::vector<std::int64_t>& rows);
  Tensor of_all_ranks(Tensor logits);
  std::vector<std::vector<float>> read(const TensorView& logits, std::size_t rows);

  RankContext& context_;
  ModelConfig model_;
  GeneratorOptions options_;
  TensorGroup group_;
  ModelConfig rank_model_;
  ParameterTable table_;
  Partition partition_;
  ZeroConfig zero_;
  PrecisionConfig precision_;
  OffloadConfig offload_;
  Placement placement_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<KeyValueCache> cache_;
  std::vector<std::int64_t> lengths_;  // by sequence
};

}  // namespace zl
