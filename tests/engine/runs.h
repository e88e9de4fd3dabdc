// Small training runs for the engine's tests: any strategy on the CPU's ranks or on the recording
// device.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/world.h"
#include "core/train/rank_program.h"
#include "simulator/storage.h"
#include "simulator/world.h"
#include "tests/engine/learnable.h"

namespace zl::test {

inline ModelConfig tiny_gpt2() {
  ModelConfig model;
  model.name = "tiny gpt2";
  model.layers = 3;
  model.hidden = 48;
  model.heads = 4;
  model.vocab = 61;
  model.max_sequence = 24;
  model.complete();
  return model;
}

inline ModelConfig tiny_llama() {
  ModelConfig model = tiny_gpt2();
  model.name = "tiny llama";
  model.family = "llama";
  model.kv_heads = 2;
  model.ffn = 80;
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.tied_embeddings = model.qkv_bias = model.out_bias = model.mlp_bias = false;
  model.complete();
  return model;
}

// Norms of heads, windows in some layers, heads that are not hidden / heads wide and turn in part,
// stretched positions, one bias of the three.
inline ModelConfig tiny_qwen3() {
  ModelConfig model = tiny_llama();
  model.name = "tiny qwen3";
  model.qk_norm = model.out_bias = true;
  model.head_size = 16;
  model.rotary_fraction = 0.5;
  model.rope_scaling = {.kind = RopeKind::yarn, .factor = 4, .original = 8};
  model.sliding_window = 7;
  model.sliding_layers = {0, 2};
  model.complete();
  return model;
}

inline ModelConfig tiny_gemma() {
  ModelConfig model = tiny_llama();
  model.name = "tiny gemma";
  model.head_size = 16;
  model.activation = ActivationKind::geglu_tanh;
  model.norm_plus_one = model.scaled_embedding = model.tied_embeddings = true;
  model.complete();
  return model;
}

// An encoder of masked tokens.
inline ModelConfig tiny_bert() {
  ModelConfig model = tiny_gpt2();
  model.name = "tiny bert";
  model.family = "bert";
  model.encoder = true;
  model.head = HeadKind::masked_token;
  model.activation = ActivationKind::gelu_erf;
  model.segments = 2;
  model.norm_epsilon = 1e-12;
  model.tied_embeddings = true;
  model.complete();
  return model;
}

// One that tells labels, of RoBERTa's kind: positions from 2 on, dropout before the pooler too.
inline ModelConfig tiny_labels() {
  ModelConfig model = tiny_bert();
  model.name = "tiny labels";
  model.head = HeadKind::label;
  model.labels = 3;
  model.max_sequence = 26;
  model.first_position = 2;
  model.drops_first_row = true;
  model.complete();
  return model;
}

inline ModelConfig with_dropout(ModelConfig model) {
  model.dropout = 0.2;
  model.attention_dropout = 0.1;
  if (model.head == HeadKind::label) model.label_dropout = 0.2;
  return model;
}

inline Strategy strategy(int stage, DType dtype = DType::f32) {
  Strategy s;
  s.name = "zero-" + std::to_string(stage);
  s.zero.stage = stage;
  s.precision.compute_dtype = dtype;
  s.micro_batch = 2;
  s.optimizer.lr = 1e-2;
  s.optimizer.weight_decay = 0.1;
  s.zero.reduce_bucket_size = 3000;
  s.zero.prefetch_bucket_size = 4000;
  s.zero.param_persistence_threshold = 0;
  s.zero.max_reuse_distance = 0;
  return s;
}

struct Finished {
  RunResult result;                         // rank 0's
  Trace trace;                              // rank 0's
  std::vector<TensorAccess> accesses;       // rank 0's
  std::vector<std::vector<float>> weights;  // final fp32 values per parameter, rank 0's view
};

inline Finished run(World& world, const ModelConfig& model, const Strategy& strategy,
                    ProgramOptions options = {}) {
  if (options.sequence_length == 0) options.sequence_length = model.positions();
  const bool real = world.executed_ranks() == world.ranks();
  const std::unique_ptr<DataSource> data = learnable_data(model);
  Finished finished;
  std::mutex mutex;
  world.run([&](RankHandle handle) {
    ProgramOptions mine = options;
    std::vector<std::vector<float>> weights;
    if (real) {
      mine.at_end = [&](Engine& engine) {
        for (int p = 0; p < static_cast<int>(engine.parameters().specs.size()); ++p) {
          weights.push_back(engine.gather_parameter(p));
        }
      };
    }
    RankOutcome outcome = run_rank(handle, model, strategy, *data, mine);
    if (handle.communicator.rank() != 0) return;
    const std::lock_guard lock(mutex);
    finished.result = std::move(outcome.result);
    finished.trace = std::move(outcome.trace);
    finished.accesses = std::move(outcome.accesses);
    finished.weights = std::move(weights);
  });
  return finished;
}

inline ProgramOptions steps(std::int64_t count) {
  ProgramOptions options;
  options.steps = count;
  options.seed = 11;
  return options;
}

inline Finished run_cpu(int ranks, const ModelConfig& model, const Strategy& strategy,
                        ProgramOptions options) {
  options.make_storage = [](const Strategy& s, int rank) {
    return cpu::make_file_storage(s.offload.nvme_path, rank, s.offload.aio);
  };
  return run(*cpu::make_world({ranks, 1}), model, strategy, options);
}

inline Finished run_sim(int ranks, const ModelConfig& model, const Strategy& strategy,
                        ProgramOptions options) {
  options.make_storage = [](const Strategy&, int) { return std::make_unique<sim::Storage>(); };
  return run(*sim::make_world({ranks, 1}, {}), model, strategy, options);
}

}  // namespace zl::test
