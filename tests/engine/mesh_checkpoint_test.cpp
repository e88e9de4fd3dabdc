// Checkpoints of meshes with tensor groups and copies of shards: resumed on the same mesh with the
// bits of the uninterrupted run, refused by another with key and both values.
#include "tests/engine/mesh_checkpoints.h"
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

struct Kept {
  std::string name;
  int ranks = 2;
  std::int64_t tensor = 1, pipeline = 1, replicas = 1;
  bool sequence_parallel = false;
};

Strategy strategy_of(const Kept& mesh, int stage, DType dtype) {
  Strategy s = accumulated(stage, dtype, 4);
  s.tensor = {.ranks = mesh.tensor, .sequence_parallel = mesh.sequence_parallel};
  s.pipeline.ranks = mesh.pipeline;
  s.zero.replicas = mesh.replicas;
  return s;
}

const std::vector<Kept> kMeshes{{"tensor 2", 2, 2},
                                {"tensor 4, kv heads twice, sequence parallel", 4, 4, 1, 1, true},
                                {"tensor 2 x data 2", 4, 2},
                                {"tensor 2 x pipeline 2", 4, 2, 2, 1, true},
                                {"tensor 2 x pipeline 2 x data 2", 8, 2, 2},
                                {"hsdp 2 x 2", 4, 1, 1, 2},
                                {"hsdp 2 x 2 x tensor 2", 8, 2, 1, 2, true},
                                {"hsdp 2 x 1 x pipeline 2", 4, 1, 2, 2}};

TEST(MeshCheckpoint, ResumesWithTheSameBits) {
  ModelConfig tied = four_layers(tiny_gpt2());
  tied.tied_embeddings = true;
  for (const Kept& mesh : kMeshes) {
    for (const int stage : {1, 3}) {
      const DType dtype = stage == 1 ? DType::f16 : DType::bf16;
      const std::string what = mesh.name + ", stage " + std::to_string(stage);
      expect_resumes(mesh.ranks, four_layers(tiny_llama()), strategy_of(mesh, stage, dtype), what);
      expect_resumes(mesh.ranks, with_dropout(tied), strategy_of(mesh, stage, DType::f32), what);
    }
  }
}

TEST(MeshCheckpoint, OfOffloadedStateResumesWithTheSameBits) {
  for (const Kept& mesh : kMeshes) {
    Strategy s = strategy_of(mesh, 2, DType::bf16);
    s.offload.optimizer = Tier::cpu;
    expect_resumes(mesh.ranks, four_layers(tiny_llama()), s, mesh.name + ", offloaded");
  }
}

// Where the number of ranks is the same, so that only the mesh differs.
TEST(MeshCheckpoint, OfAnotherMeshIsRefusedByName) {
  struct Other {
    Kept of, other;
    std::string said;
  };
  const std::vector<Other> all{
      {{"", 4, 2}, {"", 4, 4}, "its parallel.tensor is 2, not 4"},
      {{"", 4, 4}, {"", 4, 2}, "its parallel.tensor is 4, not 2"},
      {{"", 4, 2}, {"", 4, 1}, "its parallel.tensor is 2, of which this run has none"},
      {{"", 4, 1}, {"", 4, 2}, "it does not say its parallel.tensor, which is to be 2"},
      {{"", 4, 2, 2},
       {"", 4, 2},
       "its pipeline is 2 ranks of 1 stages, of which this run has none"},
      {{"", 4, 2, 1}, {"", 4, 1, 2}, "it does not say its pipeline, which is to be 2 ranks of 1"},
      {{"", 4, 1, 1, 2}, {"", 4, 1, 1, 4}, "its parallel.replicate is 2, not 4"},
      {{"", 4, 1, 1, 2}, {"", 4}, "its parallel.replicate is 2, of which this run has none"},
      {{"", 4, 2}, {"", 8, 2}, "its ranks is 4, not 8"}};
  const ModelConfig model = four_layers(tiny_llama());
  for (const Other& each : all) {
    const TempFolder folder(in_memory());
    const std::string run = (folder / "run").string();
    run_kept(each.of.ranks, model, strategy_of(each.of, 1, DType::f32), run, kDone);
    const std::vector<std::string> files = names_in(run);
    EXPECT_HAS(mesh_refusal(each.other.ranks, model, strategy_of(each.other, 1, DType::f32), run),
               each.said);
    EXPECT_EQ(names_in(run), files) << each.said;
    EXPECT_EQ(mesh_refusal(each.of.ranks, model, strategy_of(each.of, 1, DType::f32), run),
              "accepted");
  }
}

}  // namespace
}  // namespace zl::test
