// Configuration files as DeepSpeed 0.19.8 itself runs them: 50 steps of loss, loss scale and
// learning rate on two ranks. check_deepspeed.py made the goldens, files included.
#include "scenarios/deepspeed/import.h"
#include "tests/parity/training.h"

namespace zl::test {
namespace {

constexpr int kRanks = 2, kAccumulation = 2;

struct FileRun {
  std::vector<double> loss, scale, lr;
};

// One row to each rank and micro-batch.
FileRun run_file(const Strategy& strategy, int steps) {
  FileRun run;
  cpu::make_world({kRanks, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, gpt2(), strategy, kLength, 1);
    for (int step = 0; step < steps; ++step) {
      for (int micro = 0; micro < kAccumulation; ++micro) {
        const int row = context.rank() * kAccumulation + micro;
        std::vector<std::int32_t> tokens, targets;
        for (int p = 0; p < kLength; ++p) {
          tokens.push_back(token(step, row, p));
          targets.push_back(token(step, row, p + 1));
        }
        engine.forward(tokens, targets);
        engine.backward();
      }
      const StepMetrics metrics = engine.step();
      if (context.rank() != 0) continue;
      run.loss.push_back(metrics.loss);
      run.scale.push_back(metrics.loss_scale);
      run.lr.push_back(metrics.lr);
    }
  });
  return run;
}

class DeepSpeedFile : public testing::TestWithParam<std::string> {};

TEST_P(DeepSpeedFile, TrainsAsInDeepSpeed) {
  const nlohmann::json expected = golden("deepspeed")["runs"][GetParam()];
  const ImportedStrategy imported =
      import_deepspeed(expected["config"].dump(), "golden.json", {.ranks = kRanks});
  ASSERT_TRUE(imported.refusals.empty());
  ASSERT_EQ(imported.strategy.gradient_accumulation, kAccumulation);
  const int steps = static_cast<int>(expected["loss"].size());
  ASSERT_EQ(steps, 50);
  const FileRun ours = run_file(imported.strategy, steps);
  const DType type = imported.strategy.precision.compute_dtype;
  // In fp16 what each program rounds where grows with the steps: 5e-6 in the first 18.
  const double allowed = type == DType::f32 ? 1e-6 : type == DType::bf16 ? 3e-4 : 2e-3;
  const double loss = largest_relative_error(ours.loss, expected["loss"]);
  EXPECT_LT(loss, allowed);
  EXPECT_EQ(ours.scale, expected["scale"].get<std::vector<double>>());
  for (int step = 0; step < steps; ++step) {
    const double lr = expected["lr"][step].get<double>();
    EXPECT_NEAR(ours.lr.at(step), lr, 1e-12 * lr) << "step " << step + 1;
  }
  std::printf("%s: loss within %.1e\n", GetParam().c_str(), loss);
}

INSTANTIATE_TEST_SUITE_P(Files, DeepSpeedFile,
                         testing::Values("fp32", "bf16", "fp16", "fp16_stage_3", "one_cycle",
                                         "one_cycle_stairs"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace zl::test
