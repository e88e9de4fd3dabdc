// The promises of tensor and sequence parallelism: the losses and weights of one rank to rounding,
// the bits of each other under every ZeRO stage, recomputation and tier, exact books.
#include <gtest/gtest.h>

#include "tests/engine/mesh_runs.h"

namespace zl::test {
namespace {

Strategy cut(Strategy s, int ranks, bool sequence_parallel = false) {
  s.tensor = {.ranks = ranks, .sequence_parallel = sequence_parallel};
  return s;
}

Strategy small(int stage, DType dtype = DType::f32) {
  Strategy s = strategy(stage, dtype);
  s.micro_batch = 2;
  s.gradient_accumulation = 2;
  s.optimizer.lr = 4e-3;
  return s;
}

std::string name_of(const Strategy& s) {
  return "stage " + std::to_string(s.zero.stage) + ", tensor " + std::to_string(s.tensor.ranks) +
         (s.tensor.sequence_parallel ? " with sequence parallelism" : "");
}

class TensorEquality : public testing::TestWithParam<TrainingCase> {};

// An odd vocabulary, an odd number of layers, kv heads on several ranks (4 ranks, 2 kv heads).
TEST_P(TensorEquality, LossesAndWeightsAreThoseOfOneRank) {
  const ModelConfig& model = GetParam().model;
  const MeshRun reference = run_mesh(1, model, small(0), 20);
  expect_learned(reference.result().loss, 0.8);
  for (const int ranks : {2, 4}) {
    for (const bool sequence_parallel : {false, true}) {
      const Strategy s = cut(small(0), ranks, sequence_parallel);
      expect_close(reference, run_mesh(ranks, model, s, 20), 1e-5, name_of(s));
    }
  }
}

// Of one micro-batch: stages 2 and 3 reduce each of several, 0 and 1 their sum.
TEST_P(TensorEquality, EveryStageHasTheSameBits) {
  const ModelConfig& model = GetParam().model;
  const auto once = [](Strategy s) {
    s.gradient_accumulation = 1;
    return s;
  };
  for (const bool sequence_parallel : {false, true}) {
    const MeshRun reference = run_mesh(4, model, once(cut(small(0), 2, sequence_parallel)), 6);
    expect_learned(reference.result().loss, 0.95);
    for (const int stage : {1, 2, 3}) {
      Strategy s = once(cut(small(stage), 2, sequence_parallel));
      s.zero.overlap_comm = stage != 2;
      expect_same_bits(reference, run_mesh(4, model, s, 6), name_of(s));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TensorEquality,
                         testing::Values(TrainingCase{"gpt2", tiny_gpt2(), DType::f32},
                                         TrainingCase{"llama", tiny_llama(), DType::f32},
                                         TrainingCase{"qwen3", tiny_qwen3(), DType::f32},
                                         TrainingCase{"gemma", tiny_gemma(), DType::f32},
                                         TrainingCase{"dropout", with_dropout(tiny_gpt2()),
                                                      DType::f32}),
                         [](const auto& each) { return each.param.name; });

// Both families, every type: recomputed and offloaded as without.
TEST(Tensor, KeepsItsBitsUnderRecomputationAndOffload) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama(), tiny_qwen3()}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const bool gpt = model.family == "gpt2";
      const Strategy plain = cut(small(2, dtype), gpt ? 2 : 4, true);
      const int ranks = 4;
      const MeshRun reference = run_mesh(ranks, model, plain, 6);
      if (dtype != DType::f16) expect_learned(reference.result().loss, 0.95);
      for (const RecomputeConfig& recompute :
           {RecomputeConfig{.mode = RecomputeMode::full},
            RecomputeConfig{
                .mode = RecomputeMode::selective, .attention = true, .activation = true},
            RecomputeConfig{.mode = RecomputeMode::selective, .products = true}}) {
        Strategy s = plain;
        s.recompute = recompute;
        expect_same_bits(reference, run_mesh(ranks, model, s, 6), "recomputed");
      }
      Strategy away = plain;
      away.offload.optimizer = Tier::cpu;
      expect_same_bits(reference, run_mesh(ranks, model, away, 6), "offloaded");
    }
  }
}

// The forward adds up in one order with and without it; only the norms' gradients do not.
TEST(Tensor, SequenceParallelismChangesNoBitOfTheFirstLoss) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const MeshRun whole = run_mesh(2, model, cut(small(0, dtype), 2), 1);
      const MeshRun parts = run_mesh(2, model, cut(small(0, dtype), 2, true), 1);
      EXPECT_EQ(whole.result().loss, parts.result().loss);
    }
  }
}

// Tensor x pipeline x data: the bits of tensor x data.
TEST(Tensor, GoesWithPipelines) {
  ModelConfig model = tiny_llama();
  model.layers = 4;
  for (const bool sequence_parallel : {false, true}) {
    for (const int stage : {0, 1, 3}) {
      Strategy s = cut(small(stage), 2, sequence_parallel);
      s.gradient_accumulation = 4;
      const MeshRun reference = run_mesh(4, model, s, 5);
      expect_learned(reference.result().loss, 0.95);
      s.pipeline = {.ranks = 2, .schedule = PipelineKind::one_f_one_b};
      expect_same_bits(reference, run_mesh(8, model, s, 5), name_of(s) + " piped");
      s.pipeline = {.ranks = 2, .virtual_stages = 2, .schedule = PipelineKind::interleaved};
      expect_same_bits(reference, run_mesh(8, model, s, 5), name_of(s) + " interleaved");
      s.pipeline = {.ranks = 2, .schedule = PipelineKind::zb_h1};
      expect_same_bits(reference, run_mesh(8, model, s, 5), name_of(s) + " in halves");
    }
  }
}

std::vector<std::string> hazards_of(int ranks, const ModelConfig& model, const Strategy& strategy) {
  std::vector<std::string> hazards;
  ProgramOptions options = steps(2);
  options.record_accesses = true;
  options.sequence_length = model.max_sequence;
  const auto world = sim::make_world({.ranks = ranks}, {.mesh = mesh_of(strategy, ranks)});
  world->run([&](RankHandle handle) {
    const TokenSource data = learnable_tokens(model.vocab);
    const RankOutcome outcome = run_rank(handle, model, strategy, data, options);
    hazards = find_hazards(outcome.trace, outcome.accesses);
  });
  return hazards;
}

// What travels beside products is added up in the same order.
TEST(Tensor, OverlapChangesNeitherBitsNorBytes) {
  ModelConfig llama = tiny_llama();
  llama.layers = 4;
  std::vector<Strategy> meshes{small(0), small(3), small(3)};
  meshes[1].pipeline = {.ranks = 2, .schedule = PipelineKind::one_f_one_b};
  meshes[2].pipeline = {.ranks = 2, .virtual_stages = 2, .schedule = PipelineKind::dualpipe_v};
  for (const Strategy& mesh : meshes) {
    for (const bool sequence_parallel : {false, true}) {
      Strategy s = cut(mesh, 2, sequence_parallel);
      s.gradient_accumulation = 4;
      s.zero.overlap_comm = s.zero.stage == 3;
      const ModelConfig model = s.pipeline.virtual_stages == 1 ? with_dropout(tiny_gpt2()) : llama;
      const int ranks = static_cast<int>(4 * s.pipeline.ranks);
      const MeshRun plain = run_mesh(ranks, model, s);
      expect_learned(plain.result().loss, 0.98);
      s.tensor.overlap = true;
      const MeshRun beside = run_mesh(ranks, model, s), twin = record_mesh(ranks, model, s);
      expect_same_bits(plain, beside, name_of(s));
      EXPECT_EQ(plain.result().wire_bytes_per_step, beside.result().wire_bytes_per_step);
      EXPECT_EQ(hazards_of(ranks, model, s), std::vector<std::string>{});
      for (int rank = 0; rank < ranks; ++rank) {
        expect_twins(beside.ranks[rank], twin.ranks[rank],
                     name_of(s) + ", rank " + std::to_string(rank));
      }
    }
  }
}

TEST(Tensor, IsRecordedAsItIsExecutedOnEveryRank) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    for (const int ranks : {2, 4}) {
      for (const bool sequence_parallel : {false, true}) {
        for (const int stage : {0, 1, 2, 3}) {
          const Strategy s = cut(small(stage, DType::bf16), ranks, sequence_parallel);
          const MeshRun real = run_mesh(4, model, s), twin = record_mesh(4, model, s);
          for (int rank = 0; rank < 4; ++rank) {
            expect_twins(real.ranks[rank], twin.ranks[rank],
                         name_of(s) + ", rank " + std::to_string(rank));
          }
        }
      }
    }
  }
}

// Ranks of a tensor group have the same books: the simulator records the first of them.
TEST(Tensor, EveryRankOfTheGroupHasTheSameMemoryAndTraffic) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    for (const int stage : {0, 3}) {
      const MeshRun run = record_mesh(4, model, cut(small(stage), 4, true));
      for (const RunResult& rank : run.ranks) {
        EXPECT_EQ(rank.peak_device.total(), run.result().peak_device.total());
        EXPECT_EQ(rank.wire_bytes_per_step, run.result().wire_bytes_per_step);
      }
    }
  }
}

// Bytes that a rank sends along the tensor axis for blocks, in a step of one micro-batch.
std::int64_t sent_by_blocks(const ModelConfig& model, const Strategy& strategy,
                            std::int64_t sequence) {
  const int ranks = static_cast<int>(strategy.tensor.ranks);
  const auto world = sim::make_world({.ranks = ranks}, {.mesh = mesh_of(strategy, ranks)});
  const TokenSource data = learnable_tokens(model.vocab);
  ProgramOptions options = steps(1);
  options.sequence_length = sequence;
  std::int64_t bytes = 0;
  world->run([&](RankHandle handle) {
    const RankOutcome outcome = run_rank(handle, model, strategy, data, options);
    for (const TraceEvent& event : outcome.trace.events()) {
      const bool in_block = event.scope.unit > 0 && event.scope.unit <= model.layers;
      const bool in_pass = event.scope.phase == Phase::forward ||
                           event.scope.phase == Phase::backward ||
                           event.scope.phase == Phase::recompute;
      if (event.type == EventType::collective && in_block && in_pass &&
          static_cast<Axis>(event.axis) == Axis::tensor) {
        bytes += event.wire_bytes;
      }
    }
  });
  return bytes;
}

// Korthikanti et al. 2023, section 4.2; with q = (t - 1) / t s b h bytes: 8 q a layer of tensor
// parallelism, 10 q with sequence parallelism; recomputed 10 q and 13 q.
TEST(Tensor, SendsWhatTheClosedFormsSay) {
  ModelConfig model = tiny_gpt2();
  const std::int64_t sequence = 24;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int ranks : {2, 4}) {
      Strategy s = small(0, dtype);
      s.gradient_accumulation = 1;
      const std::int64_t whole =
          sequence * s.micro_batch * model.hidden * static_cast<std::int64_t>(size_of(dtype));
      const std::int64_t q = whole / ranks * (ranks - 1) * model.layers;
      EXPECT_EQ(sent_by_blocks(model, cut(s, ranks), sequence), 8 * q);
      EXPECT_EQ(sent_by_blocks(model, cut(s, ranks, true), sequence), 10 * q);
      s.recompute.mode = RecomputeMode::full;
      EXPECT_EQ(sent_by_blocks(model, cut(s, ranks), sequence), 10 * q);
      EXPECT_EQ(sent_by_blocks(model, cut(s, ranks, true), sequence), 13 * q);
    }
  }
}

TEST(Tensor, ThatCannotBeIsRefusedWithTheFix) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const ModelConfig model = tiny_gpt2();
  expect(mesh_refusal(3, model, cut(small(0), 2)),
         "parallel: tensor 2 x pipeline 1 does not divide 3 ranks; use --ranks 2 or 4");
  expect(mesh_refusal(3, model, cut(small(0), 3)),
         "parallel.tensor: 3 does not divide the model's 4 attention heads; use 2 or 4");
  ModelConfig odd = model;
  odd.ffn = 101;
  expect(mesh_refusal(2, odd, cut(small(0), 2)), "2 does not divide the model's 101 MLP columns");
  ModelConfig three = model;
  three.heads = 6;
  three.kv_heads = 3;
  three.head_size = 8;
  expect(mesh_refusal(2, three, cut(small(0), 2)),
         "2 is neither a divisor nor a multiple of the model's 3 kv heads; use 1 or 3");
  ModelConfig uneven = model;
  uneven.max_sequence = 23;
  expect(mesh_refusal(2, uneven, cut(small(0), 2, true)),
         "parallel.sequence_parallel: sequences of 23 are not cut in 2 equal parts; use "
         "--sequence-length 22");
  Strategy lamb = cut(small(0), 2);
  lamb.optimizer.kind = OptimizerKind::lamb;
  expect(mesh_refusal(2, model, lamb), "optimizer.type: LAMB");
}

}  // namespace
}  // namespace zl::test
