// ZeRO++'s hierarchical partition: backwards gather from a few neighbours what their forward
// gathered from all. The bits of stage 3, its bytes by axis, its memory.
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

Strategy parted(std::int64_t secondary, DType dtype = DType::f32) {
  Strategy s = accumulated(3, dtype, 2);
  s.zero.secondary_partition = secondary;
  return s;
}

// What changes when weights are gathered, and where they lie between.
std::vector<Strategy> variants_of(DType dtype) {
  std::vector<Strategy> all(6, parted(1, dtype));
  all[0].name = "plain";
  all[1].name = "overlap, recomputed";
  all[1].zero.overlap_comm = true;
  all[1].recompute.mode = RecomputeMode::full;
  all[2].name = "persistent, reused";
  all[2].zero.overlap_comm = true;
  all[2].zero.param_persistence_threshold = 100;
  all[2].zero.max_reuse_distance = 20000;
  all[3].name = "quantized";
  all[3].zero.quantized_weights = true;
  all[4].name = "offloaded";
  all[4].offload.optimizer = all[4].offload.parameters = Tier::cpu;
  all[5].name = "two ranks of a tensor group";
  all[5].tensor.ranks = 2;
  return all;
}

TEST(Secondary, HasTheBitsOfStage3) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    const DType dtype = model.family == "gpt2" ? DType::f32 : DType::bf16;
    for (const Strategy& plain : variants_of(dtype)) {
      const int ranks = static_cast<int>(4 * plain.tensor.ranks);
      const MeshRun reference = run_mesh(ranks, model, plain, 6);
      expect_learned(reference.result().loss, 0.98, plain.name);
      for (const std::int64_t secondary : {2, 4}) {
        Strategy s = plain;
        s.zero.secondary_partition = secondary;
        expect_same_bits(reference, run_mesh(ranks, model, s, 6),
                         plain.name + ", parts of " + std::to_string(secondary));
      }
    }
  }
}

TEST(Secondary, GoesWithPipelines) {
  const ModelConfig model = four_layers(tiny_llama());
  Strategy plain = parted(1);
  plain.gradient_accumulation = 4;
  const MeshRun reference = run_mesh(2, model, plain, 5);
  for (const Schedules& each : kSchedules) {
    if (each.ranks != 2) continue;
    Strategy s = piped(plain, each.kind, each.ranks, each.chunks);
    s.zero.secondary_partition = 2;
    expect_same_bits(reference, run_mesh(4, model, s, 5), name_of(each.kind));
    expect_recorded_as_executed(4, model, s);
  }
}

TEST(Secondary, IsRecordedAsItIsExecutedOnEveryRank) {
  for (Strategy s : variants_of(DType::bf16)) {
    s.zero.secondary_partition = 2;
    expect_recorded_as_executed(static_cast<int>(4 * s.tensor.ranks), tiny_llama(), s);
  }
}

std::int64_t sent_along(const Trace& trace, Axis axis) {
  std::int64_t bytes = 0;
  for (const TraceEvent& event : trace.events()) {
    const bool in_step = event.type == EventType::collective && event.scope.step == 1 &&
                         static_cast<Purpose>(event.purpose) == Purpose::data;
    if (in_step && static_cast<Axis>(event.axis) == axis) bytes += event.wire_bytes;
  }
  return bytes;
}

// ZeRO++ (Wang et al. 2023), hpZ: of N ranks in parts of S, each micro-batch gathers forward over N
// and backward over S, and reduce-scatters over N; a rank holds an S-th of the weights more.
TEST(Secondary, SendsAndHoldsWhatTheClosedFormsSay) {
  const ModelConfig model = tiny_gpt2();
  for (const auto& [ranks, secondary] : {std::pair{4, 2}, {8, 2}, {8, 4}, {8, 8}}) {
    const std::string what = std::to_string(ranks) + " in parts of " + std::to_string(secondary);
    const MeshRun plain = record_mesh(ranks, model, parted(1), 2);
    const MeshRun near = record_mesh(ranks, model, parted(secondary), 2);
    const std::int64_t padded =
        Partition(ParameterTable(model).counts(), ranks, 0).full_elements() * 4;
    const std::int64_t all = padded / ranks * (ranks - 1);
    const std::int64_t micros = parted(1).gradient_accumulation;
    EXPECT_EQ(sent_along(plain.traces[0], Axis::data), micros * 3 * all) << what;
    EXPECT_EQ(sent_along(near.traces[0], Axis::data), micros * 2 * all) << what;
    EXPECT_EQ(sent_along(near.traces[0], Axis::secondary),
              micros * (padded / secondary) * (secondary - 1))
        << what;
    TaggedBytes expected = plain.result().peak_device;
    expected.tag[static_cast<std::size_t>(MemoryTag::parameter)] += padded / secondary;
    EXPECT_EQ(near.result().peak_device, expected) << what;
  }
}

TEST(Secondary, ThatCannotBeIsRefusedWithTheFix) {
  const std::string key = "zero_optimization.zero_hpz_partition_size: ";
  EXPECT_EQ(mesh_refusal(4, tiny_gpt2(), parted(3)),
            key + "3 does not divide the 4 ranks that share the weights; use 2 or 4");
  Strategy low = parted(2);
  low.zero.stage = 2;
  EXPECT_EQ(mesh_refusal(4, tiny_gpt2(), low), key + "needs stage 3, which gathers weights, not 2");
  Strategy copies = parted(2);
  copies.zero.replicas = 2;
  EXPECT_EQ(mesh_refusal(4, tiny_gpt2(), copies),
            key +
                "does not go with copies of shards, which gather nearby "
                "already; use one of the two");
}

}  // namespace
}  // namespace zl::test
