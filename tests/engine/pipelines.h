// Small training runs over pipelines, on the CPU's ranks or, every rank, on the recording device.
// Ownership: values. Threads: one test.
#pragma once

#include <map>
#include <numeric>

#include "tests/engine/comparisons.h"

namespace zl::test {

struct Pipelined {
  std::vector<RunResult> ranks;
  std::vector<Trace> traces;
  std::map<std::string, std::vector<float>> weights;  // by name, from the ranks that have them

  const RunResult& result() const { return ranks.front(); }
};

// Of the ranks that `world` runs; of the CPU's with their final weights.
inline Pipelined run_ranks(World& world, const ModelConfig& model, const Strategy& strategy,
                           ProgramOptions options) {
  options.sequence_length = model.max_sequence;
  const TokenSource data = learnable_tokens(model.vocab);
  const bool real = world.executed_ranks() == world.ranks();
  Pipelined finished;
  finished.ranks.resize(world.ranks());
  finished.traces.resize(world.ranks());
  std::mutex mutex;
  world.run([&](RankHandle handle) {
    ProgramOptions mine = options;
    std::map<std::string, std::vector<float>> weights;
    mine.at_end = [&](Engine& engine) {
      for (int p = 0; real && p < static_cast<int>(engine.parameters().specs.size()); ++p) {
        weights[engine.parameters().specs[p].name] = engine.gather_parameter(p);
      }
    };
    RankOutcome outcome = run_rank(handle, model, strategy, data, mine);
    const std::lock_guard lock(mutex);
    finished.ranks[handle.communicator.rank()] = std::move(outcome.result);
    finished.traces[handle.communicator.rank()] = std::move(outcome.trace);
    for (auto& [name, values] : weights) {
      const auto [at, fresh] = finished.weights.emplace(name, values);
      EXPECT_TRUE(fresh || at->second == values) << name << ": two ranks differ";
    }
  });
  return finished;
}

inline Pipelined run_pipeline(int ranks, const ModelConfig& model, const Strategy& strategy,
                              std::int64_t count = 4) {
  return run_ranks(*cpu::make_world({.ranks = ranks}), model, strategy, steps(count));
}

// Every rank, one after the other, on the recording device.
inline Pipelined record_pipeline(int ranks, const ModelConfig& model, const Strategy& strategy,
                                 std::int64_t count = 4) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  const auto world = sim::make_world(
      {.ranks = ranks}, {.mesh = mesh_of(strategy, ranks), .recorded = std::move(all)});
  return run_ranks(*world, model, strategy, steps(count));
}

// The books of every rank.
inline void expect_recorded_as_executed(int ranks, const ModelConfig& model, const Strategy& s) {
  const Pipelined real = run_pipeline(ranks, model, s), twin = record_pipeline(ranks, model, s);
  for (int rank = 0; rank < ranks; ++rank) {
    expect_twins(real.ranks[rank], twin.ranks[rank],
                 std::string(name_of(s.pipeline.schedule)) + " rank " + std::to_string(rank));
  }
}

inline void expect_same_bits(const Pipelined& a, const Pipelined& b, const std::string& what) {
  EXPECT_EQ(a.result().loss, b.result().loss) << what;
  EXPECT_EQ(a.result().grad_norm, b.result().grad_norm) << what;
  EXPECT_TRUE(a.weights == b.weights) << what << ": final weights differ";
}

inline ModelConfig four_layers(ModelConfig model) {
  model.layers = 4;
  model.tied_embeddings = false;
  model.complete();
  return model;
}

inline Strategy accumulated(int stage, DType dtype, std::int64_t micro_batches) {
  Strategy s = strategy(stage, dtype);
  s.micro_batch = 1;
  s.optimizer.lr = 4e-3;
  s.gradient_accumulation = micro_batches;
  return s;
}

inline Strategy piped(Strategy s, PipelineKind kind, int ranks, int chunks = 1) {
  s.pipeline = {.ranks = ranks, .virtual_stages = chunks, .schedule = kind};
  return s;
}

struct Schedules {
  PipelineKind kind;
  int ranks, chunks;
};

// One of each kind that adds gradients up in the order of the micro-batches.
inline const std::vector<Schedules> kSchedules{
    {PipelineKind::gpipe, 2, 1},          {PipelineKind::gpipe, 4, 1},
    {PipelineKind::one_f_one_b, 2, 1},    {PipelineKind::one_f_one_b, 3, 1},
    {PipelineKind::one_f_one_b, 4, 1},    {PipelineKind::interleaved, 2, 2},
    {PipelineKind::zb_h1, 2, 1},          {PipelineKind::zb_h1, 4, 1},
    {PipelineKind::zb_h2, 3, 1},          {PipelineKind::zb_h2, 4, 1},
    {PipelineKind::interleaved_zb, 2, 2}, {PipelineKind::zb_v, 2, 2},
    {PipelineKind::dualpipe_v, 2, 2}};

}  // namespace zl::test
