// Hybrid sharding (HSDP, MiCS): shards over a part of the ranks, in copies.
#include <gtest/gtest.h>

#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

Strategy hybrid(int stage, int replicas, DType dtype = DType::f32) {
  Strategy s = strategy(stage, dtype);
  s.micro_batch = 1;
  s.gradient_accumulation = 2;
  s.optimizer.lr = 4e-3;
  s.zero.replicas = replicas;
  return s;
}

// Sums over shards, then over copies: another order than over all ranks.
TEST(Hybrid, LossesAndWeightsAreThoseOfOneCutOverAllRanks) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    for (const int stage : {1, 2, 3}) {
      const MeshRun reference = run_mesh(4, model, hybrid(stage, 1), 12);
      expect_learned(reference.result().loss, 0.9);
      for (const int replicas : {2, 4}) {
        Strategy s = hybrid(stage, replicas);
        s.zero.overlap_comm = replicas == 2;
        expect_close(reference, run_mesh(4, model, s, 12), 1e-5,
                     "stage " + std::to_string(stage) + ", copies " + std::to_string(replicas));
      }
    }
  }
}

// Offloaded or not, of one micro-batch.
TEST(Hybrid, EveryStageHasTheSameBits) {
  const ModelConfig model = tiny_gpt2();
  const auto once = [](Strategy s) {
    s.gradient_accumulation = 1;
    return s;
  };
  const MeshRun reference = run_mesh(4, model, once(hybrid(1, 2)), 6);
  for (const int stage : {2, 3}) {
    Strategy s = once(hybrid(stage, 2));
    expect_same_bits(reference, run_mesh(4, model, s, 6), "stage " + std::to_string(stage));
    s.offload.optimizer = Tier::cpu;
    expect_same_bits(reference, run_mesh(4, model, s, 6), "offloaded");
  }
}

// Beside a tensor group and a pipeline: their bits without copies to the order of sums.
TEST(Hybrid, GoesWithTensorGroupsAndPipelines) {
  ModelConfig model = tiny_llama();
  model.layers = 4;
  Strategy s = hybrid(3, 2);
  s.tensor = {.ranks = 2, .sequence_parallel = true};
  const MeshRun plain = run_mesh(8, model, s, 5);
  s.pipeline = {.ranks = 2, .schedule = PipelineKind::one_f_one_b};
  expect_same_bits(plain, run_mesh(16, model, s, 5), "piped");
}

TEST(Hybrid, IsRecordedAsItIsExecutedOnEveryRank) {
  for (const int stage : {1, 2, 3}) {
    const Strategy s = hybrid(stage, 2, DType::bf16);
    const MeshRun real = run_mesh(4, tiny_gpt2(), s), twin = record_mesh(4, tiny_gpt2(), s);
    for (int rank = 0; rank < 4; ++rank) {
      expect_twins(real.ranks[rank], twin.ranks[rank], "rank " + std::to_string(rank));
    }
  }
}

// MiCS (Zhang et al. 2022): S ranks of a copy, R copies; elements sent in a step of G
// micro-batches.
TEST(Hybrid, SendsWhatTheClosedFormsSay) {
  const ModelConfig model = tiny_gpt2();
  for (const auto& [ranks, replicas] : {std::pair{4, 2}, std::pair{8, 2}, std::pair{8, 4}}) {
    Strategy s = hybrid(3, replicas);
    s.zero.param_persistence_threshold = 0;
    s.zero.max_reuse_distance = 0;
    const int shard = ranks / replicas;
    std::int64_t inside = 0, between = 0;
    const auto world = sim::make_world({.ranks = ranks}, {.mesh = mesh_of(s, ranks)});
    const TokenSource data = learnable_tokens(model.vocab);
    ProgramOptions options = steps(1);
    options.sequence_length = model.max_sequence;
    world->run([&](RankHandle handle) {
      const RankOutcome outcome = run_rank(handle, model, s, data, options);
      for (const TraceEvent& event : outcome.trace.events()) {
        if (event.type != EventType::collective || event.scope.step == 0) continue;
        if (static_cast<Purpose>(event.purpose) != Purpose::data) continue;
        const auto axis = static_cast<Axis>(event.axis);
        (axis == Axis::replicate ? between : inside) += event.wire_bytes;
      }
    });
    const std::int64_t padded =
        Partition(ParameterTable(model).counts(), shard, 0).full_elements() * 4;
    const std::int64_t chunk = padded / shard;
    const std::int64_t micros = s.gradient_accumulation;
    EXPECT_EQ(inside, micros * 3 * padded / shard * (shard - 1)) << ranks << replicas;
    EXPECT_EQ(between, 2 * (replicas - 1) * ((chunk / 4 + replicas - 1) / replicas) * 4);
  }
}

std::int64_t bytes_between_copies(const MeshRun& run) {
  std::int64_t bytes = 0;
  for (const Trace& trace : run.traces) {
    for (const TraceEvent& event : trace.events()) {
      const bool sends = event.type == EventType::collective && event.scope.step > 0;
      const bool data = static_cast<Purpose>(event.purpose) == Purpose::data;
      if (sends && data && static_cast<Axis>(event.axis) == Axis::replicate) {
        bytes += event.wire_bytes;
      }
    }
  }
  return bytes;
}

// Each stage's shard is averaged once, however many stages a rank has and in however many halves
// their backwards come: an eighth more at most, for chunks that do not divide.
TEST(Hybrid, EveryStageOfAPipelineIsAveragedOnce) {
  ModelConfig model = tiny_llama();
  model.layers = 4;
  for (const int stage : {2, 3}) {
    Strategy s = hybrid(stage, 2);
    s.gradient_accumulation = 4;
    s.pipeline = {.ranks = 2, .schedule = PipelineKind::one_f_one_b};
    const std::int64_t once = bytes_between_copies(record_mesh(8, model, s));
    EXPECT_GT(once, 0);
    for (const Schedules& each : kSchedules) {
      if (each.ranks != 2) continue;
      const MeshRun run = record_mesh(8, model, piped(s, each.kind, 2, each.chunks));
      const std::int64_t bytes = bytes_between_copies(run);
      EXPECT_GE(bytes, once) << name_of(each.kind);
      EXPECT_LE(8 * bytes, 9 * once) << name_of(each.kind);
    }
  }
}

// So the sums of the micro-batches come before those of the copies, whichever half adds them.
TEST(Hybrid, BackwardsInHalvesHaveTheBitsOfWholeOnes) {
  const ModelConfig model = four_layers(tiny_gpt2());
  using enum PipelineKind;
  for (const int stage : {2, 3}) {
    Strategy s = hybrid(stage, 2);
    s.gradient_accumulation = 4;
    s.zero.overlap_comm = stage == 3;
    const MeshRun plain = run_mesh(4, model, s);
    expect_learned(plain.result().loss, 0.98);
    for (const auto& [kind, chunks] : {std::pair{one_f_one_b, 1},
                                       {zb_h1, 1},
                                       {zb_h2, 1},
                                       {zb_v, 2},
                                       {interleaved_zb, 2},
                                       {dualpipe_v, 2}}) {
      const Strategy halves = piped(s, kind, 2, chunks);
      const MeshRun run = run_mesh(8, model, halves);
      expect_same_bits(plain, run, std::string(name_of(kind)) + ", stage " + std::to_string(stage));
      expect_recorded(run, model, halves);
    }
  }
}

TEST(Hybrid, ThatCannotBeIsRefusedWithTheFix) {
  EXPECT_EQ(mesh_refusal(4, tiny_gpt2(), hybrid(3, 3)),
            "parallel.replicate: 3 does not divide the 4 data-parallel ranks; use 2 or 4");
  EXPECT_EQ(mesh_refusal(4, tiny_gpt2(), hybrid(0, 2)),
            "parallel.replicate: copies of shards need ZeRO stage 1, 2 or 3, not 0");
  EXPECT_NE(mesh_refusal(2, tiny_gpt2(), hybrid(1, 4))
                .find("4 does not divide the 2 data-parallel ranks; use 2"),
            std::string::npos);
}

}  // namespace
}  // namespace zl::test
