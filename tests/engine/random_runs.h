// Runs drawn at random: what the engine promises must hold for every one that it accepts.
// Ownership: a Draw owns its random numbers. Threads: one.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/engine/runs.h"

namespace zl::test {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  template <class T>
  T of(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }
  std::int64_t of(std::initializer_list<std::int64_t> values) {
    return of(std::vector<std::int64_t>(values));
  }
  bool one_in(std::uint64_t count) { return random_() % count == 0; }

 private:
  std::mt19937_64 random_;
};

inline void draw_llama_kin(Draw& draw, ModelConfig& model) {
  model.activation = draw.one_in(2) ? ActivationKind::swiglu : ActivationKind::geglu_tanh;
  model.norm_plus_one = draw.one_in(3);
  model.scaled_embedding = draw.one_in(3);
  model.out_bias = draw.one_in(4);
  if (draw.one_in(3)) model.head_size = draw.of({4, 12});
  model.rope_scaling.kind =
      draw.of(std::vector{RopeKind::none, RopeKind::linear, RopeKind::dynamic, RopeKind::yarn});
  model.rope_scaling.factor = 2;
  model.rope_scaling.original = 4;
}

inline ModelConfig random_model(Draw& draw) {
  ModelConfig model;
  model.name = "random";
  model.family = draw.one_in(2) ? "llama" : "gpt2";
  const bool llama = model.family == "llama";
  model.layers = draw.of({1, 1, 2, 3, 5});
  model.heads = draw.of({1, 2, 3, 4});
  model.hidden = model.heads * draw.of({2, 4, 8, 20});
  model.vocab = draw.of({8, 50, 61, 97, 256});
  model.max_sequence = draw.of({1, 2, 5, 16, 33});
  model.ffn = draw.of({0, 7, 16, 40});
  model.tied_embeddings = draw.one_in(2);
  model.qkv_bias = draw.one_in(2);
  model.out_bias = model.mlp_bias = !llama && draw.one_in(2);
  if (model.heads % 2 == 0 && draw.one_in(2)) model.kv_heads = model.heads / 2;
  if (llama || draw.one_in(3)) model.norm = NormKind::rms_norm;
  if (llama || draw.one_in(3)) model.position = PositionKind::rope;
  if (llama) draw_llama_kin(draw, model);
  model.qk_norm = draw.one_in(3);
  if (draw.one_in(3)) model.sliding_window = draw.of({1, 3, 7});
  if (model.layers > 1 && draw.one_in(2)) model.sliding_layers = {1};
  if (draw.one_in(3)) model = with_dropout(model);
  model.complete();
  return model;
}

inline void draw_offload(Draw& draw, Strategy& s) {
  OffloadConfig& offload = s.offload;
  offload.optimizer = draw.one_in(2) ? Tier::cpu : Tier::nvme;
  offload.sub_group_size = draw.of({100, 1000, 20'000, 1'000'000'000});
  offload.ratio = draw.of(std::vector{1.0, 1.0, 0.5, 0.3});
  offload.pin_memory = draw.one_in(2);
  offload.nvme_path = testing::TempDir();
  offload.aio.block_size = 4096;
  offload.optimizer_buffer_count = draw.of({4, 5, 8});
  offload.pipeline_read = draw.one_in(2);
  offload.pipeline_write = draw.one_in(2);
  if (s.zero.stage < 3 || draw.one_in(3)) return;
  offload.parameters = draw.one_in(2) ? Tier::cpu : Tier::nvme;
  offload.max_in_cpu = draw.of({0, 1000, 1'000'000});
  offload.parameter_buffer_count = draw.of({1, 2, 5});
}

// What no bit depends on, of a strategy of one stage.
inline void draw_schedule(Draw& draw, Strategy& s) {
  ZeroConfig& zero = s.zero;
  zero.overlap_comm = draw.one_in(2);
  zero.reduce_bucket_size = draw.of({1, 100, 5000, 500'000'000});
  zero.prefetch_bucket_size = draw.of({0, 500, 5000, 100'000'000});
  zero.param_persistence_threshold = draw.of({0, 10, 100, 1'000'000});
  zero.max_live_parameters = draw.of({0, 1000, 1'000'000'000});
  zero.max_reuse_distance = draw.of({0, 1000, 1'000'000'000});
  s.recompute.mode =
      draw.of(std::vector{RecomputeMode::none, RecomputeMode::none, RecomputeMode::full,
                          RecomputeMode::every_k, RecomputeMode::selective});
  s.recompute.every = draw.of({2, 3});
  s.recompute.attention = draw.one_in(2);
  s.recompute.activation = draw.one_in(2);
  s.recompute.products = draw.one_in(3);
  if (s.zero.stage > 0 && draw.one_in(2)) draw_offload(draw, s);
  if (s.recompute.mode == RecomputeMode::full) s.offload.activations = draw.one_in(3);
}

inline Strategy random_strategy(Draw& draw) {
  Strategy s = strategy(static_cast<int>(draw.of({0, 1, 2, 3, 3})));
  s.precision.compute_dtype = draw.of(std::vector{DType::f32, DType::bf16, DType::f16});
  s.optimizer.kind = draw.of(std::vector{
      OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::sgd,
      OptimizerKind::onebit_adam, OptimizerKind::zero_one_adam, OptimizerKind::onebit_lamb});
  s.optimizer.onebit.freeze_step = draw.of({1, 2});
  s.micro_batch = draw.of({1, 1, 2, 3});
  s.gradient_accumulation = draw.of({1, 1, 2, 3, 12});
  s.gradient_clipping = draw.one_in(2) ? 1.0 : 0.0;
  if (draw.one_in(3)) s.precision.communication_dtype = s.precision.compute_dtype;
  s.loss_scaler.initial_scale_power = draw.of({8, 16, 20});
  draw_schedule(draw, s);
  return s;
}

// For messages.
inline std::string describe(const ModelConfig& model, const Strategy& s) {
  return model.family + " layers " + std::to_string(model.layers) + " hidden " +
         std::to_string(model.hidden) + ", " + s.name + " " + name_of(s.precision.compute_dtype) +
         " optimizer " + std::to_string(static_cast<int>(s.optimizer.kind)) + " accumulation " +
         std::to_string(s.gradient_accumulation) + " recompute " +
         std::to_string(static_cast<int>(s.recompute.mode)) + " offload " +
         std::to_string(static_cast<int>(s.offload.optimizer)) +
         std::to_string(static_cast<int>(s.offload.parameters)) +
         std::to_string(s.offload.activations);
}

}  // namespace zl::test
