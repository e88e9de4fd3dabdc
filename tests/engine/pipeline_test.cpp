// The promise of pipelines: losses and final weights of every schedule and number of stages are the
// bits of the run without one.
#include <gtest/gtest.h>

#include <set>

#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

class PipelineEquality : public testing::TestWithParam<TrainingCase> {};

TEST_P(PipelineEquality, EverySchedulesBitsAreThoseWithoutOne) {
  const TrainingCase& c = GetParam();
  const ModelConfig model = four_layers(c.model);
  for (const int stage : {0, 1, 2, 3}) {
    Strategy plain = accumulated(stage, c.dtype, 6);
    plain.zero.overlap_comm = stage == 1 || stage == 3;
    for (const int data : {1, 2}) {
      const MeshRun reference = run_mesh(data, model, plain);
      if (stage == 0) expect_learned(reference.result().loss, 0.98);
      for (const Schedules& each : kSchedules) {
        if (stage != 1 && data * each.ranks > 4) continue;
        const MeshRun run =
            run_mesh(data * each.ranks, model, piped(plain, each.kind, each.ranks, each.chunks));
        expect_same_bits(reference, run,
                         std::string(name_of(each.kind)) + " of " + std::to_string(each.ranks) +
                             " ranks, stage " + std::to_string(stage) + ", data " +
                             std::to_string(data));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PipelineEquality,
                         testing::Values(TrainingCase{"gpt2_fp32", tiny_gpt2(), DType::f32},
                                         TrainingCase{"llama_bf16", tiny_llama(), DType::bf16},
                                         TrainingCase{"qwen3_fp32", tiny_qwen3(), DType::f32},
                                         TrainingCase{"gemma_bf16", tiny_gemma(), DType::bf16},
                                         TrainingCase{"gpt2_fp16", tiny_gpt2(), DType::f16},
                                         TrainingCase{"dropout_bf16", with_dropout(tiny_gpt2()),
                                                      DType::bf16}),
                         [](const auto& each) { return each.param.name; });

// Recomputation, overlap and offload inside a pipeline.
std::vector<Strategy> variants_of(Strategy s) {
  std::vector<Strategy> all;
  s.zero.overlap_comm = true;
  s.recompute.mode = RecomputeMode::full;
  all.push_back(s);
  s.zero.overlap_comm = false;
  s.recompute.mode = RecomputeMode::every_k;
  s.recompute.every = 2;
  all.push_back(s);
  s.offload.activations = true;
  all.push_back(s);
  s = strategy(2, s.precision.compute_dtype);
  s.micro_batch = 1;
  s.gradient_accumulation = all.front().gradient_accumulation;
  s.optimizer.lr = all.front().optimizer.lr;
  s.offload.optimizer = Tier::cpu;
  all.push_back(s);
  return all;
}

TEST(Pipeline, KeepsItsBitsUnderRecomputationOverlapAndOffload) {
  const ModelConfig model = four_layers(tiny_gpt2());
  for (const Strategy& plain : variants_of(accumulated(3, DType::f32, 5))) {
    const MeshRun reference = run_mesh(2, model, plain);
    expect_learned(reference.result().loss, 0.98);
    expect_same_bits(reference, run_mesh(4, model, piped(plain, PipelineKind::one_f_one_b, 2)),
                     "recompute " + std::to_string(static_cast<int>(plain.recompute.mode)));
  }
}

// Stages of other sizes, fewer micro-batches than ranks, one of them.
TEST(Pipeline, MayBeUnevenAndHaveFewMicroBatches) {
  const ModelConfig model = four_layers(tiny_llama());
  for (const std::int64_t micros : {1, 2, 3}) {
    const Strategy plain = accumulated(1, DType::f32, micros);
    const MeshRun reference = run_mesh(1, model, plain, 6);
    expect_learned(reference.result().loss, 0.99);
    Strategy s = piped(plain, PipelineKind::one_f_one_b, 3);
    s.pipeline.layers_per_stage = {1, 2, 1};
    expect_same_bits(reference, run_mesh(3, model, s, 6), std::to_string(micros));
  }
}

struct Split {
  PipelineKind kind;
  int ranks, chunks;
  std::vector<std::int64_t> layers;
};

// Embedding and head in stages of their own, and stages of a rank that only hand on.
TEST(Pipeline, MayHaveStagesWithoutALayer) {
  using enum PipelineKind;
  const std::vector<Split> splits{{one_f_one_b, 3, 1, {0, 4, 0}},
                                  {gpipe, 2, 1, {0, 4}},
                                  {interleaved, 2, 3, {0, 1, 2, 0, 1, 0}},
                                  {zb_h1, 3, 1, {0, 4, 0}},
                                  {zb_h2, 2, 1, {4, 0}},
                                  {interleaved_zb, 2, 2, {0, 2, 2, 0}},
                                  {zb_v, 2, 2, {2, 0, 2, 0}},
                                  {dualpipe_v, 2, 2, {0, 4, 0, 0}}};
  ModelConfig tied = four_layers(with_dropout(tiny_gpt2()));
  tied.tied_embeddings = true;
  for (const ModelConfig& model : {tied, four_layers(tiny_llama())}) {
    for (const int stage : {1, 3}) {
      Strategy plain = accumulated(stage, DType::bf16, 6);
      plain.separate_tied_gradient = model.ties_head();
      plain.zero.overlap_comm = stage == 3;
      if (stage == 3) plain.recompute.mode = RecomputeMode::full;
      plain.offload.activations = stage == 3 && model.ties_head();
      const MeshRun reference = run_mesh(2, model, plain);
      expect_learned(reference.result().loss, 0.98);
      for (const Split& each : splits) {
        Strategy s = piped(plain, each.kind, each.ranks, each.chunks);
        s.pipeline.layers_per_stage = each.layers;
        const MeshRun run = run_mesh(2 * each.ranks, model, s);
        expect_same_bits(reference, run, name_of(each.kind));
        expect_recorded(run, model, s);
      }
    }
  }
}

// A tied weight has the sum of two accumulators under a pipeline, one without; breadth-first adds
// micro-batches up the other way round: the same to rounding.
TEST(Pipeline, IsCloseWhereGradientsAddUpInAnotherOrder) {
  ModelConfig tied = four_layers(tiny_gpt2());
  tied.tied_embeddings = true;
  const auto compare = [](const ModelConfig& model, PipelineKind kind, int chunks) {
    for (const int stage : {0, 1, 2, 3}) {
      const Strategy plain = accumulated(stage, DType::f32, 4);
      const MeshRun reference = run_mesh(2, model, plain, 8);
      const MeshRun run = run_mesh(4, model, piped(plain, kind, 2, chunks), 8);
      expect_learned(reference.result().loss, 0.9);
      for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_NEAR(run.result().loss[i], reference.result().loss[i],
                    2e-5 * reference.result().loss[i]);
        EXPECT_NEAR(run.result().grad_norm[i], reference.result().grad_norm[i],
                    1e-4 * reference.result().grad_norm[i]);
      }
    }
  };
  compare(tied, PipelineKind::one_f_one_b, 1);
  compare(tied, PipelineKind::interleaved, 2);
  compare(four_layers(tiny_gpt2()), PipelineKind::breadth_first, 2);
}

TEST(Pipeline, IsRecordedAsItIsExecutedOnEveryRank) {
  for (const ModelConfig& model : {tiny_gpt2(), four_layers(tiny_llama())}) {
    for (const Schedules& each : kSchedules) {
      if (each.ranks * each.chunks > model.layers) continue;
      for (const int stage : {0, 1, 2, 3}) {
        const Strategy s =
            piped(accumulated(stage, DType::bf16, 6), each.kind, each.ranks, each.chunks);
        expect_recorded_as_executed(each.ranks * (each.ranks < 4 ? 2 : 1), model, s);
      }
    }
  }
}

// Blocks that a rank computes again, by their numbers in the model.
std::set<int> recomputed_blocks(const Trace& trace) {
  std::set<int> blocks;
  for (const TraceEvent& event : trace.events()) {
    if (event.scope.phase == Phase::recompute) blocks.insert(event.scope.unit);
  }
  return blocks;
}

// Every second stage's blocks, and more than the first stage has.
std::vector<std::int64_t> uneven_blocks(int stages) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(stages), 0);
  for (std::size_t stage = 0; stage < blocks.size(); stage += 2) blocks[stage] = 1;
  blocks[0] = 9;
  return blocks;
}

TEST(Pipeline, KeepsItsBitsWhereStagesRecomputeDifferently) {
  const ModelConfig model = four_layers(tiny_gpt2());
  for (const int stage : {1, 3}) {
    const Strategy plain = accumulated(stage, DType::f32, 6);
    const MeshRun reference = run_mesh(1, model, plain);
    expect_learned(reference.result().loss, 0.98);
    for (const Schedules& each : kSchedules) {
      Strategy s = piped(plain, each.kind, each.ranks, each.chunks);
      s.recompute = {.mode = RecomputeMode::first_blocks,
                     .stage_blocks = uneven_blocks(each.ranks * each.chunks)};
      s.offload.activations = stage == 3;
      const MeshRun run = run_mesh(each.ranks, model, s);
      expect_same_bits(reference, run, name_of(each.kind));
      expect_recorded(run, model, s);
    }
  }
}

TEST(Pipeline, RecomputesOfEachStageItsOwnFirstBlocks) {
  const ModelConfig model = four_layers(tiny_gpt2());
  Strategy s = piped(accumulated(1, DType::f32, 4), PipelineKind::one_f_one_b, 2);
  const MeshRun none = record_mesh(2, model, s);
  s.recompute = {.mode = RecomputeMode::first_blocks, .stage_blocks = {1, 0}};
  const MeshRun some = record_mesh(2, model, s);
  EXPECT_EQ(recomputed_blocks(some.traces[0]), (std::set<int>{1}));
  EXPECT_EQ(recomputed_blocks(some.traces[1]), std::set<int>{});
  EXPECT_LT(some.ranks[0].peak_device.total(), none.ranks[0].peak_device.total());
  EXPECT_EQ(some.ranks[1].peak_device.tag, none.ranks[1].peak_device.tag);
  // On a V the first rank has the last stage as well.
  s = piped(s, PipelineKind::zb_v, 2, 2);
  s.recompute.stage_blocks = {0, 1, 0, 1};
  const MeshRun on_a_v = record_mesh(2, model, s);
  EXPECT_EQ(recomputed_blocks(on_a_v.traces[0]), (std::set<int>{4}));
  EXPECT_EQ(recomputed_blocks(on_a_v.traces[1]), (std::set<int>{2}));
}

TEST(Pipeline, ThatCannotBeIsRefusedWithTheFix) {
  const Strategy plain = accumulated(0, DType::f32, 4);
  using enum PipelineKind;
  EXPECT_NE(mesh_refusal(3, tiny_gpt2(), piped(plain, gpipe, 2))
                .find("parallel.pipeline: 2 does not divide 3 ranks; use --ranks 2 or 4, or a "
                      "pipeline that divides them"),
            std::string::npos);
  EXPECT_NE(mesh_refusal(4, tiny_gpt2(), piped(plain, gpipe, 4))
                .find("parallel.pipeline: 4 ranks of 1 virtual stages make 4 stages, the model has "
                      "3 layers; use at most 3 stages"),
            std::string::npos);
  Strategy uneven = piped(plain, gpipe, 2);
  uneven.pipeline.layers_per_stage = {3, 1};
  EXPECT_NE(mesh_refusal(2, tiny_gpt2(), uneven)
                .find("parallel.layers_per_stage: 2 stages of 4 layers together; give 2 numbers "
                      "that add up to 3"),
            std::string::npos);
  Strategy idle = piped(plain, gpipe, 3);
  idle.pipeline.layers_per_stage = {2, 0, 1};
  EXPECT_EQ(mesh_refusal(3, tiny_gpt2(), idle),
            "parallel.layers_per_stage: rank 1 of the pipeline would have nothing; give it a "
            "layer, or use fewer ranks");
  Strategy blocks = piped(plain, interleaved, 2, 2);
  blocks.recompute = {.mode = RecomputeMode::first_blocks, .stage_blocks = {1, 0}};
  EXPECT_EQ(mesh_refusal(2, four_layers(tiny_gpt2()), blocks),
            "recompute: blocks of 2 stages, there are 4; give 4 numbers, or one for all");
}

}  // namespace
}  // namespace zl::test
