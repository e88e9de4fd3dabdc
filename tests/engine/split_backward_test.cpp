// Backwards in halves: how many micro-batches a rank holds, whole until the gradient of their input
// is known and what their weights need until that of the weights is (Qi et al. 2024).
#include <algorithm>
#include <string_view>

#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

constexpr std::int64_t kMicroBatches = 8;

// The most blocks of that label at once; one layer a stage makes them micro-batches.
int most_held(const Trace& trace, std::string_view what) {
  std::map<std::int64_t, bool> held;  // by address
  int now = 0, most = 0;
  for (const TraceEvent& event : trace.events()) {
    if (event.type == EventType::allocate && event.what == what) {
      held[event.id] = true;
      most = std::max(most, ++now);
    } else if (event.type == EventType::free && held[event.id]) {
      held[event.id] = false;
      --now;
    }
  }
  return most;
}

struct Held {
  PipelineKind kind;
  int ranks, chunks;
  std::vector<int> until_input, until_weights;  // by rank
};

TEST(SplitBackward, HoldsWhatTheClosedFormsSay) {
  using enum PipelineKind;
  const std::vector<Held> closed_forms{{one_f_one_b, 4, 1, {4, 3, 2, 1}, {4, 3, 2, 1}},
                                       {gpipe, 4, 1, {8, 8, 8, 8}, {8, 8, 8, 8}},
                                       {zb_h1, 4, 1, {4, 3, 2, 1}, {4, 4, 4, 4}},
                                       {zb_h2, 4, 1, {7, 5, 3, 1}, {7, 7, 7, 7}},
                                       {interleaved_zb, 2, 2, {4, 3}, {4, 4}},
                                       {zb_v, 2, 2, {4, 4}, {4, 4}},
                                       {dualpipe_v, 2, 2, {5, 5}, {5, 5}}};
  for (const Held& each : closed_forms) {
    const Strategy s =
        piped(accumulated(1, DType::f32, kMicroBatches), each.kind, each.ranks, each.chunks);
    const MeshRun run = record_mesh(each.ranks, four_layers(tiny_gpt2()), s, 1);
    for (int rank = 0; rank < each.ranks; ++rank) {
      const std::string what = std::string(name_of(each.kind)) + " rank " + std::to_string(rank);
      EXPECT_EQ(most_held(run.traces[rank], "qkv"), each.until_input[rank]) << what;
      EXPECT_EQ(most_held(run.traces[rank], "norm1"), each.until_weights[rank]) << what;
    }
  }
}

// Bytes of activations before each block of that label is allocated.
std::vector<std::int64_t> activations_before(const Trace& trace, std::string_view what) {
  std::vector<std::int64_t> found;
  std::map<std::int64_t, std::int64_t> held;  // by address
  std::int64_t now = 0;
  for (const TraceEvent& event : trace.events()) {
    if (event.kind != static_cast<std::uint8_t>(MemoryTag::activation)) continue;
    if (event.type == EventType::allocate) {
      if (event.what == what) found.push_back(now);
      now += held[event.id] = event.bytes_written;
    } else if (event.type == EventType::free) {
      now -= std::exchange(held[event.id], 0);
    }
  }
  return found;
}

// Of a layer, e s b (4h + a hd + f + qkv + f_in): 16 hidden vectors of GPT-2.
TEST(SplitBackward, KeepsInputsAndOutputGradientsOfTheLinearLayers) {
  const ModelConfig model = four_layers(tiny_gpt2());
  const Strategy s = piped(accumulated(1, DType::bf16, kMicroBatches), PipelineKind::zb_h2, 4);
  const MeshRun run = record_mesh(4, model, s, 1);
  const std::int64_t vector = model.max_sequence * model.hidden * 2;
  // F0 I0 F1 I1 .. F6 I6 W0 F7: what waits when each forward of the last rank begins, and the last
  // two gradients that went to the stage before.
  std::vector<std::int64_t> expected;
  for (const int micro_batches : {0, 1, 2, 3, 4, 5, 6, 6}) {
    expected.push_back((16 * micro_batches + std::min(micro_batches, 2)) * vector);
  }
  EXPECT_EQ(activations_before(run.traces[3], "norm1"), expected);
}

// Under sequence parallelism what waits of the norms is each rank's part of the rows: they are
// brought together when their time comes, one after the other.
TEST(SplitBackward, GathersRowsForOneWeightAtATime) {
  const ModelConfig model = four_layers(tiny_llama());
  Strategy plain = accumulated(1, DType::bf16, kMicroBatches);
  plain.tensor = {.ranks = 2, .sequence_parallel = true};
  const MeshRun reference = run_mesh(2, model, plain);
  expect_learned(reference.result().loss, 0.98);
  using enum PipelineKind;
  for (const auto& [kind, chunks] : {std::pair{zb_h2, 1}, {interleaved_zb, 2}, {zb_v, 2}}) {
    const Strategy s = piped(plain, kind, 2, chunks);
    const MeshRun run = run_mesh(4, model, s);
    expect_same_bits(reference, run, name_of(kind));
    expect_recorded(run, model, s);
    for (const Trace& trace : record_mesh(4, model, s, 1).traces) {
      EXPECT_EQ(most_held(trace, "norm of all rows"), 1) << name_of(kind);
    }
  }
}

TEST(SplitBackward, HasTheSameBitsUnderRecomputationAndOffload) {
  const ModelConfig model = four_layers(with_dropout(tiny_gpt2()));
  for (const RecomputeConfig& recompute :
       {RecomputeConfig{.mode = RecomputeMode::full},
        RecomputeConfig{.mode = RecomputeMode::every_k, .every = 2},
        RecomputeConfig{.mode = RecomputeMode::selective, .attention = true, .activation = true},
        RecomputeConfig{.mode = RecomputeMode::selective, .products = true}}) {
    const RecomputeMode mode = recompute.mode;
    Strategy plain = accumulated(3, DType::bf16, 6);
    plain.recompute = recompute;
    plain.offload.activations = mode != RecomputeMode::selective;
    plain.zero.overlap_comm = mode == RecomputeMode::full;
    const MeshRun reference = run_mesh(2, model, plain);
    expect_learned(reference.result().loss, 0.98);
    using enum PipelineKind;
    for (const auto& [kind, chunks] : {std::pair{zb_h1, 1}, {zb_h2, 1}, {zb_v, 2}}) {
      const Strategy s = piped(plain, kind, 2, chunks);
      expect_same_bits(reference, run_mesh(4, model, s), name_of(kind));
      expect_recorded_as_executed(4, model, s);
    }
  }
}

}  // namespace
}  // namespace zl::test
