// What the tests of pipelines share: schedules, small strategies over them, their books.
// Ownership: values. Threads: one test.
#pragma once

#include "tests/engine/mesh_runs.h"

namespace zl::test {

// The books of every rank of a run.
inline void expect_recorded(const MeshRun& real, const ModelConfig& model, const Strategy& s) {
  const int ranks = static_cast<int>(real.ranks.size());
  const MeshRun twin = record_mesh(ranks, model, s);
  for (int rank = 0; rank < ranks; ++rank) {
    expect_twins(real.ranks[rank], twin.ranks[rank],
                 std::string(name_of(s.pipeline.schedule)) + " rank " + std::to_string(rank));
  }
}

inline void expect_recorded_as_executed(int ranks, const ModelConfig& model, const Strategy& s) {
  expect_recorded(run_mesh(ranks, model, s), model, s);
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
