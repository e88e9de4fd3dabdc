// Trajectories against PyTorch: 50 steps of loss and gradient norm of tiny models, AdamW with
// clipping and warm-up. The goldens come from generate.py, which reads initial weights that this
// program wrote.
#include <cstdlib>
#include <map>

#include "core/checkpoint/safetensors.h"
#include "tests/parity/training.h"

namespace zl::test {
namespace {

constexpr int kSteps = 50;

// The initial weights in table order, from one rank.
std::vector<std::vector<float>> initial_weights(const std::string& model) {
  std::vector<std::vector<float>> weights;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, named(model), adamw(0, 1), kLength, 1);
    for (int p = 0; p < static_cast<int>(engine.parameters().specs.size()); ++p) {
      weights.push_back(engine.gather_parameter(p));
    }
  });
  return weights;
}

// As generate.py's: every weight times a small integer that depends on its place, tensors by name.
double checksum(const std::string& model, const std::vector<std::vector<float>>& weights) {
  const ParameterTable table(named(model));
  std::map<std::string, const std::vector<float>*> by_name;
  for (std::size_t p = 0; p < weights.size(); ++p) by_name[table.specs[p].name] = &weights[p];
  double total = 0;
  std::size_t place = 0;
  for (const auto& [name, tensor] : by_name) {
    for (std::size_t i = 0; i < tensor->size(); ++i) {
      total +=
          static_cast<double>((*tensor)[i]) * static_cast<double>((i * 7 + place * 13) % 101 + 1);
    }
    ++place;
  }
  return total;
}

class Parity : public testing::TestWithParam<std::string> {};

// Writes files for generate.py when ZL_PARITY_WEIGHTS names a folder; always checks that the
// weights are those of the goldens (when they are not, the goldens must be made anew).
TEST_P(Parity, WritesInitialWeightsAndTheyAreTheGoldens) {
  const std::vector<std::vector<float>> weights = initial_weights(GetParam());
  if (const char* folder = std::getenv("ZL_PARITY_WEIGHTS")) {
    const ParameterTable table(named(GetParam()));
    std::vector<NamedTensor> tensors;
    for (std::size_t p = 0; p < weights.size(); ++p) {
      const Shape& shape = table.specs[p].shape;
      std::vector<std::int64_t> dims;
      for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
      tensors.push_back(
          {table.specs[p].name, DType::f32, dims, std::as_bytes(std::span(weights[p]))});
    }
    write_safetensors(std::string(folder) + "/" + GetParam() + ".safetensors", tensors, {});
    return;
  }
  const double expected = golden(GetParam())["weights_checksum"].get<double>();
  EXPECT_NEAR(checksum(GetParam(), weights), expected, 1e-9 * std::fabs(expected))
      << "the initialisation changed: run tests/parity/generate.py";
}

TEST_P(Parity, Fp32FollowsPyTorch) {
  const nlohmann::json expected = golden(GetParam())["fp32"];
  ASSERT_EQ(expected["loss"].size(), static_cast<std::size_t>(kSteps));
  for (const int ranks : {1, 4}) {
    for (const int stage : {0, 3}) {
      const Trajectory ours = train(GetParam(), adamw(stage, ranks), ranks, kSteps);
      const double loss = largest_relative_error(ours.loss, expected["loss"]);
      const double norm = largest_relative_error(ours.grad_norm, expected["grad_norm"]);
      EXPECT_LT(loss, 1e-5) << ranks << " ranks, stage " << stage;
      EXPECT_LT(norm, 1e-4) << ranks << " ranks, stage " << stage;
      RecordProperty("loss_error", std::to_string(loss));
      std::printf("%s, %d ranks, ZeRO-%d: loss within %.1e, gradient norm within %.1e\n",
                  GetParam().c_str(), ranks, stage, loss, norm);
    }
  }
}

TEST_P(Parity, Bf16StaysNear) {
  const Trajectory ours = train(GetParam(), adamw(2, 4, DType::bf16), 4, kSteps);
  const double loss = largest_relative_error(ours.loss, golden(GetParam())["fp32"]["loss"]);
  EXPECT_LT(loss, 2e-2);
  std::printf("%s, 4 ranks, ZeRO-2, bf16: loss within %.1e\n", GetParam().c_str(), loss);
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, testing::Values("gpt2", "llama", "llama3", "qwen2"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace zl::test
