// Trajectories of encoders against transformers: 50 steps of loss and gradient norm from the zoo's
// weights, AdamW with clipping and warm-up, texts of different lengths. The goldens come from
// generate_encoders.py.
#include "scenarios/files/model_file.h"
#include "scenarios/weights/model_weights.h"
#include "tests/parity/training.h"

namespace zl::test {
namespace {

constexpr int kEncoderSteps = 50, kRowLength = 12, kMask = 2;

int encoder_token(int step, int row, int place) {
  return 3 + (step * 31 + row * 17 + place * (1 + row % 3) + place * place / 7) % 45;
}

// Batches of kBatch texts as generate_encoders.py has them.
class EncoderRows final : public DataSource {
 public:
  explicit EncoderRows(bool masked) : masked_(masked) {}

  Batch batch(const BatchRequest& request) const override {
    Batch batch;
    const int step = static_cast<int>(request.step);
    const auto first = static_cast<int>(request.first_sample());
    for (int row = first; row < first + static_cast<int>(request.micro_batch); ++row) {
      add_row(step, row, batch);
    }
    if (!masked_) return batch;
    for (int row = 0; row < kBatch; ++row) {
      for (int p = 0; p < length_of(step, row); ++p) batch.step_rows += is_told(step, row, p);
    }
    return batch;
  }

 private:
  static int length_of(int step, int row) { return 5 + (row * 3 + step) % 8; }
  static bool is_told(int step, int row, int p) { return p > 0 && (p + row + step) % 5 == 2; }

  void add_row(int step, int row, Batch& batch) const {
    const int length = length_of(step, row);
    batch.lengths.push_back(length);
    if (!masked_) batch.targets.push_back(encoder_token(step, row, 1) % 3);
    for (int p = 0; p < kRowLength; ++p) {
      const bool is_text = p < length;
      const int token = is_text ? encoder_token(step, row, p) : 0;
      const bool told = masked_ && is_text && is_told(step, row, p);
      batch.tokens.push_back(told ? kMask : token);
      batch.segments.push_back(is_text && 2 * p > length ? 1 : 0);
      if (masked_) batch.targets.push_back(told ? token : -1);
    }
  }

  bool masked_;
};

class EncoderParity : public testing::TestWithParam<std::string> {};

TEST_P(EncoderParity, Fp32FollowsTransformers) {
  const nlohmann::json expected = golden("encoders")[GetParam()];
  const std::string folder = std::string(ZL_SOURCE_DIR) + "/tests/golden/models/zoo/" + GetParam();
  ModelConfig model = load_model(folder);
  model.dropout = model.attention_dropout = model.label_dropout = 0;
  const ModelWeights weights(folder, model);
  const EncoderRows rows(model.head == HeadKind::masked_token);
  struct Split {
    int ranks, micro_batch, accumulation, stage;
  };
  for (const auto& [ranks, micro_batch, accumulation, stage] :
       {Split{1, 4, 1, 0}, Split{4, 1, 1, 3}, Split{2, 1, 2, 2}}) {
    Strategy s = adamw(stage, 1);
    s.micro_batch = micro_batch;
    s.gradient_accumulation = accumulation;
    s.optimizer.beta2 = 0.999;
    s.optimizer.weight_decay = 0.01;
    s.recompute.mode = stage == 3 ? RecomputeMode::full : RecomputeMode::none;
    Trajectory ours;
    cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
      RankContext context(handle.device, handle.communicator, {.mesh = mesh_of(s, ranks)});
      Engine engine(context, model, s, kRowLength, InitialWeights(1, &weights));
      for (int step = 0; step < kEncoderSteps; ++step) {
        const StepMetrics metrics = run_step(engine, rows, {.sequence_length = kRowLength});
        if (context.rank() != 0) continue;
        ours.loss.push_back(metrics.loss);
        ours.grad_norm.push_back(metrics.grad_norm);
      }
    });
    EXPECT_LT(largest_relative_error(ours.loss, expected["loss"]), 1e-5) << ranks << " ranks";
    EXPECT_LT(largest_relative_error(ours.grad_norm, expected["grad_norm"]), 1e-4)
        << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(, EncoderParity, testing::Values("bert_seqcls", "bert_mlm"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace zl::test
