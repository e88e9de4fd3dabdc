// What a stage keeps of its micro-batches, in bytes: at its peak the sum over those in flight,
// whole until the gradient of their input is known, and the inputs of the linear layers from there
// until that of their weights is. For every schedule, alone and over a tensor
// group.
#include <set>
#include <string_view>

#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

constexpr int kHeldMicros = 8;

// Of one layer and micro-batch on a rank of a tensor group. Two bytes an element, four a statistic.
struct KeptBytes {
  std::int64_t input = 0;  // but of the first layer of a stage, which others have made
  std::int64_t whole = 0;  // without it
  // Of it, until the gradient of weights: the gradient of a gated up lies where up was, and where
  // norms have a part of the rows all of them wait in other blocks, gathered for the first half.
  std::int64_t waiting = 0;
};

KeptBytes kept_by_layer(const ModelConfig& model, const Strategy& s) {
  const std::int64_t ranks = s.tensor.ranks, rows = model.max_sequence * s.micro_batch;
  const std::int64_t own_rows = s.tensor.sequence_parallel ? rows / ranks : rows;
  const std::int64_t heads = model.heads / ranks;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model.kv_heads / ranks);
  const bool gpt = model.family == "gpt2";
  const std::int64_t stream = 2 * own_rows * model.hidden;
  const std::int64_t qkv = 2 * rows * (heads + 2 * kv_heads) * model.head_size;
  const std::int64_t attention = 2 * rows * heads * model.head_size;
  const std::int64_t activation = 2 * rows * model.ffn / ranks, up = activation * (gpt ? 1 : 2);
  const std::int64_t statistics = 4 * own_rows * (gpt ? 4 : 2) + 4 * rows * heads;
  // Both norms and x between them; qkv, attention and MLP.
  return {.input = stream,
          .whole = 3 * stream + qkv + attention + up + activation + statistics,
          .waiting = (s.tensor.sequence_parallel ? 0 : 2 * stream) + attention + activation +
                     (gpt ? 0 : up)};
}

// By the rank's list of work alone.
std::int64_t expected_peak(const Pipeline& pipeline, int rank, int layers, const KeptBytes& layer) {
  const std::int64_t whole = layers * layer.whole + (layers - 1) * layer.input;
  const std::int64_t waiting = layers * layer.waiting;
  std::int64_t now = 0, peak = 0;
  for (const Work& work : pipeline.work[rank]) {
    if (work.kind == WorkKind::forward) now += whole;
    if (work.kind == WorkKind::backward) now -= whole;
    if (work.kind == WorkKind::input_gradient) now -= whole - waiting;
    if (work.kind == WorkKind::weight_gradient) now -= waiting;
    peak = std::max(peak, now);
  }
  EXPECT_EQ(now, 0);
  return peak;
}

std::int64_t kept_at_peak(const Trace& trace) {
  static const std::set<std::string_view> kKept{
      "block input",   "norm1", "norm1 mean", "norm1 rstd", "qkv",    "attention log-sum-exp",
      "attention",     "norm2", "norm2 mean", "norm2 rstd", "mlp up", "residual",
      "mlp activation"};
  std::map<std::int64_t, std::int64_t> held;  // by address
  std::int64_t now = 0, peak = 0;
  for (const TraceEvent& event : trace.events()) {
    if (event.kind != static_cast<std::uint8_t>(MemoryTag::activation)) continue;
    if (event.type == EventType::allocate && kKept.contains(event.what)) {
      now += held[event.id] = event.bytes_written;
      peak = std::max(peak, now);
    } else if (event.type == EventType::free) {
      now -= std::exchange(held[event.id], 0);
    }
  }
  EXPECT_EQ(now, 0);
  return peak;
}

void expect_peaks(PipelineKind kind, int ranks, int chunks, const ModelConfig& model) {
  const Pipeline pipeline =
      make_pipeline(kind, {.ranks = ranks, .micro_batches = kHeldMicros, .chunks = chunks});
  const int layers = static_cast<int>(model.layers) / (ranks * chunks);
  for (const auto& [tensor, sequence_parallel] : {std::pair{1, false}, {2, false}, {2, true}}) {
    Strategy s = piped(accumulated(1, DType::bf16, kHeldMicros), kind, ranks, chunks);
    s.tensor = {.ranks = tensor, .sequence_parallel = sequence_parallel};
    const MeshRun run = record_mesh(ranks * tensor, model, s, 1);
    for (int rank = 0; rank < ranks * tensor; ++rank) {
      EXPECT_EQ(kept_at_peak(run.traces[rank]),
                expected_peak(pipeline, rank / tensor, layers, kept_by_layer(model, s)))
          << name_of(kind) << " of " << ranks << " x " << chunks << ", tensor " << tensor
          << (sequence_parallel ? " with sequence parallelism" : "") << ", rank " << rank;
    }
  }
}

TEST(StageMemory, PeaksAtWhatTheScheduleHasInFlight) {
  for (const ModelConfig& model : {four_layers(tiny_gpt2()), four_layers(tiny_llama())}) {
    for (const Schedules& each : kSchedules) {
      if (each.ranks == 3) continue;
      expect_peaks(each.kind, each.ranks, each.chunks, model);
    }
    expect_peaks(PipelineKind::breadth_first, 2, 2, model);
  }
}

}  // namespace
}  // namespace zl::test
