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
  // Of it, until the gradient of weights: the gradient of a gated up lies where up was. Norms wait
  // as they were, a part of the rows where they had that.
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
          .waiting = 2 * stream + attention + activation + (gpt ? 0 : up)};
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

struct Meter {
  std::int64_t now = 0, peak = 0;

  void add(std::int64_t bytes) { peak = std::max(peak, now += bytes); }
  void drop(std::int64_t bytes) { now -= bytes; }
};

// Bytes of a micro-batch's tensors in a layer, as kept_by_layer has them, and in the head.
struct Sizes {
  Sizes(const ModelConfig& model, const Strategy& s)
      : gpt(model.family == "gpt2"),
        rows(model.max_sequence * s.micro_batch),
        stream(2 * rows * model.hidden),
        qkv(2 * rows * (model.heads + 2 * model.kv_heads) * model.head_size),
        attention(2 * rows * model.heads * model.head_size),
        activation(2 * rows * model.ffn),
        up(activation * (gpt ? 1 : 2)),
        norm(4 * rows * (gpt ? 2 : 1)),
        heads(4 * rows * model.heads),
        logits(2 * rows * ((model.vocab + 63) / 64 * 64)) {}

  bool gpt;
  std::int64_t rows, stream, qkv, attention, activation, up, norm, heads, logits;
};

// What the passes of a stage with so many layers hold and let go, in their order.
struct StageMeter {
  Sizes b;
  std::int64_t layers;
  bool first, last;

  void forward(Meter& held) const {
    if (first) held.add(b.stream);  // else it came as a message
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      if (layer > 0) held.add(b.stream);
      held.add(b.stream + b.norm);
      if (layer > 0) held.drop(b.stream);  // what the layer before added is in the sum
      held.add(b.qkv);
      held.add(b.attention + b.heads);
      held.add(b.stream);  // what attention adds
      held.add(2 * b.stream + b.norm);
      held.drop(b.stream);
      held.add(b.up);
      held.add(b.activation);
      held.add(b.stream);  // what the MLP adds; at the end of a stage its message
    }
    if (!last) return;
    held.add(2 * b.stream + b.norm);  // the sum and its norm
    held.drop(b.stream);
  }

  // The whole backward, or that of the input.
  void backward(Meter& held, bool halves) const {
    if (last) {
      held.add(4 * b.rows + b.stream + b.logits);
      held.drop(4 * b.rows + b.stream + b.logits);
      held.drop(b.stream + b.norm);
    }
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      mlp_backward(held, halves);
      attention_backward(held, halves);
    }
    if (first) held.drop(b.stream);
  }

  void mlp_backward(Meter& held, bool halves) const {
    held.add(b.activation);
    if (halves) held.add(b.stream);  // the gradient goes on in a copy
    if (!halves) held.drop(b.activation);
    held.drop(b.activation);  // in place of it, or of up
    held.add(b.stream);
    if (!halves) held.drop(b.up + b.stream);
    held.drop(2 * b.stream);  // the norm's gradient and its input
  }

  void attention_backward(Meter& held, bool halves) const {
    held.add(b.attention + b.qkv + b.heads);
    held.drop(b.attention + b.heads);
    if (halves) held.add(b.stream);
    if (!halves) held.drop(b.attention);
    held.drop(b.qkv + b.heads);
    held.add(b.stream);
    held.drop(b.stream);
    if (!halves) held.drop(b.qkv + b.stream);
    held.drop(b.stream + 2 * b.norm);  // the layer's input
  }

  void weight_gradient(Meter& held) const {
    held.drop(layers * (b.activation + b.up + b.attention + b.qkv + 4 * b.stream));
  }
};

std::int64_t peak_of_passes(const Pipeline& pipeline, const Schedule& schedule, int rank,
                            std::int64_t layers, const Sizes& sizes) {
  Meter held;
  for (const Instruction& each : schedule.body) {
    const int stage = pipeline.stage_of(rank, each.chunk);
    const StageMeter meter{sizes, layers, stage == 0, stage + 1 == pipeline.stages()};
    switch (each.kind) {
      case InstructionKind::forward:
        meter.forward(held);
        break;
      case InstructionKind::backward:
        meter.backward(held, false);
        break;
      case InstructionKind::input_gradient:
        meter.backward(held, true);
        break;
      case InstructionKind::weight_gradient:
        meter.weight_gradient(held);
        break;
      case InstructionKind::receive_stream:
      case InstructionKind::receive_gradient:
        held.add(sizes.stream);
        break;
      case InstructionKind::release_stream:
      case InstructionKind::release_gradient:
        held.drop(sizes.stream);
        break;
      default:
        break;
    }
  }
  EXPECT_EQ(held.now, 0);
  return held.peak;
}

void expect_total(const Schedules& each, const ModelConfig& model) {
  const Strategy s =
      piped(accumulated(0, DType::bf16, kHeldMicros), each.kind, each.ranks, each.chunks);
  const auto plan = plan_pipeline(s.pipeline, kHeldMicros);
  const Sizes sizes(model, s);
  const MeshRun run = record_mesh(each.ranks, model, s, 1);
  for (int rank = 0; rank < each.ranks; ++rank) {
    const Schedule& schedule = plan->schedules[rank];
    std::int64_t ids = 0;  // of tokens and targets
    for (int chunk = 0; chunk < each.chunks; ++chunk) {
      const int stage = plan->pipeline.stage_of(rank, chunk);
      const bool has_ids = stage == 0 || stage + 1 == plan->pipeline.stages();
      if (has_ids) ids += 8 * sizes.rows * schedule.in_flight(chunk);
    }
    constexpr std::int64_t kStates = 2 + 4 + 12;  // weights, gradients, masters and moments
    const std::int64_t states = kStates * parameters_of(model, s, rank, {}).count();
    const std::int64_t passes = peak_of_passes(plan->pipeline, schedule, rank,
                                               model.layers / (each.ranks * each.chunks), sizes);
    const std::int64_t scalars = run.ranks[rank].peak_device.total() - (states + ids + passes);
    EXPECT_GE(scalars, 0) << name_of(each.kind) << " rank " << rank;
    EXPECT_LE(scalars, 64) << name_of(each.kind) << " rank " << rank << ": of "
                           << run.ranks[rank].peak_device.total();
  }
}

TEST(StageMemory, TotalsAtTheirPeaksFollowTheInstructions) {
  for (const ModelConfig& model : {four_layers(tiny_gpt2()), four_layers(tiny_llama())}) {
    for (const Schedules& each : kSchedules) {
      if (each.ranks != 3) expect_total(each, model);
    }
    expect_total({PipelineKind::breadth_first, 2, 2}, model);
  }
}

}  // namespace
}  // namespace zl::test
