// The books of meshes of all three kinds of parallelism: what is recorded is what every rank
// executes, to the byte and in order; each axis carries the bytes of the closed forms
//; a stage holds what its schedule has in flight.
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

constexpr std::int64_t kMicros = 4;

struct MeshRow {
  PipelineKind schedule = PipelineKind::one_f_one_b;
  int tensor = 1, pipeline = 1, data = 1, replicas = 1, secondary = 1, chunks = 1;
  bool sequence_parallel = false;

  int ranks() const { return tensor * pipeline * data; }
};

Strategy strategy_of(const MeshRow& row, int stage, DType dtype) {
  Strategy s = piped(accumulated(stage, dtype, kMicros), row.schedule, row.pipeline, row.chunks);
  s.tensor = {.ranks = row.tensor, .sequence_parallel = row.sequence_parallel};
  s.zero.replicas = row.replicas;
  s.zero.secondary_partition = row.secondary;
  s.zero.overlap_comm = stage == 3;
  return s;
}

int chunks_of(PipelineKind kind) {
  using enum PipelineKind;
  const bool several = is_v(kind) || kind == interleaved || kind == interleaved_zb;
  return several || kind == breadth_first ? 2 : 1;
}

// Tensor 2 x pipeline 2 x data 2, tied with dropout and with fewer kv heads than heads; norms on
// parts of the rows under stages 1 and 3.
class MeshBooks : public testing::TestWithParam<PipelineKind> {};

TEST_P(MeshBooks, AreRecordedAsTheyAreExecutedOnEveryRank) {
  ModelConfig tied = four_layers(with_dropout(tiny_gpt2()));
  tied.tied_embeddings = true;
  for (const ModelConfig& model : {tied, four_layers(tiny_llama())}) {
    for (const int stage : {0, 1, 2, 3}) {
      const MeshRow row{.schedule = GetParam(),
                        .tensor = 2,
                        .pipeline = 2,
                        .data = 2,
                        .chunks = chunks_of(GetParam()),
                        .sequence_parallel = stage % 2 == 1};
      expect_recorded_as_executed(row.ranks(), model, strategy_of(row, stage, DType::bf16));
    }
  }
}

std::vector<PipelineKind> all_kinds() {
  std::vector<PipelineKind> kinds;
  for (int i = 0; i < kPipelineKinds; ++i) kinds.push_back(static_cast<PipelineKind>(i));
  return kinds;
}

std::string test_name(PipelineKind kind) {
  std::string name = name_of(kind);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Schedules, MeshBooks, testing::ValuesIn(all_kinds()),
                         [](const auto& each) { return test_name(each.param); });

// Copies of shards and parts of gathered weights beside the other axes, groups of four.
TEST(OtherMeshBooks, AreRecordedAsTheyAreExecutedOnEveryRank) {
  using enum PipelineKind;
  const std::vector<MeshRow> rows{
      {.tensor = 4, .data = 2, .sequence_parallel = true},
      {.tensor = 2, .data = 4, .replicas = 2},
      {.schedule = zb_h1, .pipeline = 4, .data = 2},
      {.tensor = 4, .pipeline = 2},
      {.schedule = gpipe, .tensor = 2, .pipeline = 4, .sequence_parallel = true},
      {.schedule = zb_v, .pipeline = 2, .data = 4, .replicas = 2, .chunks = 2},
      {.tensor = 2, .pipeline = 2, .data = 2, .replicas = 2, .sequence_parallel = true}};
  for (const MeshRow& row : rows) {
    for (const int stage : {1, 2, 3}) {
      expect_recorded_as_executed(row.ranks(), four_layers(tiny_llama()),
                                  strategy_of(row, stage, DType::f32));
    }
  }
  for (const int secondary : {2, 4}) {
    const MeshRow row{.tensor = 2, .data = 4, .secondary = secondary, .sequence_parallel = true};
    expect_recorded_as_executed(row.ranks(), tiny_llama(), strategy_of(row, 3, DType::bf16));
  }
}

// Of one step of one rank: collectives of forward, backward and reduction, messages that it sends.
struct SentByAxis {
  std::int64_t blocks = 0, data = 0, messages = 0, messages_sent = 0;
};

SentByAxis sent_by(const Trace& trace, const ModelConfig& model) {
  SentByAxis sent;
  for (const TraceEvent& event : trace.events()) {
    if (event.scope.step != 1 || static_cast<Purpose>(event.purpose) != Purpose::data) continue;
    const auto axis = static_cast<Axis>(event.axis);
    if (event.type == EventType::message && event.kind == 1) {
      ++sent.messages;
      sent.messages_sent += event.wire_bytes;
    }
    if (event.type != EventType::collective) continue;
    const bool in_pass =
        event.scope.phase == Phase::forward || event.scope.phase == Phase::backward;
    const bool in_block = event.scope.unit > 0 && event.scope.unit <= model.layers;
    if (axis == Axis::tensor && in_pass && in_block) sent.blocks += event.wire_bytes;
    if (axis == Axis::data) sent.data += event.wire_bytes;
  }
  return sent;
}

// Elements of a stage's parameters, padded for `data` ranks.
std::int64_t padded_elements(const ModelConfig& model, const Strategy& s, int data, int stage) {
  const TensorShard shard{static_cast<int>(s.tensor.ranks), 0, s.tensor.sequence_parallel};
  return Partition(parameters_of(model, s, stage, shard).counts(), data, 0).full_elements();
}

// Once a step, or for each micro-batch: in units of (D - 1) / D of a stage.
std::int64_t passes_over_data(int stage) {
  if (stage == 2) return kMicros + 1;
  return stage == 3 ? 3 * kMicros : 2;
}

TEST(MeshTraffic, OfEveryAxisIsThatOfTheClosedForms) {
  const ModelConfig model = four_layers(tiny_llama());
  const std::int64_t stream = model.max_sequence * model.hidden * 4;
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool sequence_parallel : {false, true}) {
      const MeshRow row{
          .tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = sequence_parallel};
      const Strategy s = strategy_of(row, stage, DType::f32);
      const MeshRun run = record_mesh(row.ranks(), model, s, 1);
      for (int rank = 0; rank < row.ranks(); ++rank) {
        const std::string what =
            "stage " + std::to_string(stage) + ", rank " + std::to_string(rank);
        const SentByAxis sent = sent_by(run.traces[rank], model);
        const std::int64_t layers = model.layers / row.pipeline, q = stream / 2;
        EXPECT_EQ(sent.blocks, (sequence_parallel ? 10 : 8) * q * layers * kMicros) << what;
        const std::int64_t own = padded_elements(model, s, row.data, rank / 4) * 4;
        EXPECT_EQ(sent.data, passes_over_data(stage) * own / 2) << what;
        EXPECT_EQ(sent.messages, kMicros) << what;
        EXPECT_EQ(sent.messages_sent, kMicros * (sequence_parallel ? stream / 2 : stream)) << what;
      }
    }
  }
}

// 2 m (S - 1) messages of S stages in a loop, 2 m (2 p - 2) on a V of p ranks.
TEST(MeshTraffic, ThereAreAsManyMessagesAsStagesNeed) {
  for (const PipelineKind kind : all_kinds()) {
    const MeshRow row{.schedule = kind, .pipeline = 2, .chunks = chunks_of(kind)};
    const ModelConfig model = four_layers(tiny_llama());
    const MeshRun run = record_mesh(2, model, strategy_of(row, 1, DType::f32), 1);
    std::int64_t messages = 0;
    for (const Trace& trace : run.traces) messages += sent_by(trace, model).messages;
    const int stages = row.pipeline * row.chunks;
    EXPECT_EQ(messages, 2 * kMicros * (is_v(kind) ? 2 * row.pipeline - 2 : stages - 1))
        << name_of(kind);
  }
}

}  // namespace
}  // namespace zl::test
