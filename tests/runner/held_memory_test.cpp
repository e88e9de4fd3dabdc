// What PyTorch's own MemTracker says that programs hold at their peak, and what DeepSpeed was seen
// to hold, beside held_memory() under the catalogue's profiles (tests/parity/torch_memory.py and
// deepspeed_memory.py). No number of the profiles was fitted to these cases, so tolerances are
// those of the count itself.
#include "simulator/held_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "simulator/held_block.h"

namespace zl::sim {
namespace {

using Json = nlohmann::json;

constexpr double kPeak = 0.005;                              // of the total
constexpr double kDeepSpeed = 0.03, kDeepSpeedMean = 0.003;  // of the total
constexpr double kCategory = 0.05;  // of a category, or of a fifth of the total

const Json& golden() {
  static const Json document = Json::parse(read_file(
      (std::filesystem::path(ZL_SOURCE_DIR) / "tests/golden/memory/torch.json").string()));
  return document;
}

ModelConfig model_of(const Json& each) {
  const Json& shape = golden()["models"][each["model"].get<std::string>()];
  zl::Json model = {{"name", each["model"].get<std::string>()},
                    {"max_sequence", each["sequence"].get<std::int64_t>()},
                    {"dropout", each.value("dropout", 0.0)}};
  for (const auto& [key, value] : shape.items()) {
    if (key == "tied") {
      model["tied_embeddings"] = value.get<bool>();
    } else if (value.is_string()) {
      model[key] = value.get<std::string>();
    } else {
      model[key] = value.get<std::int64_t>();
    }
  }
  return model_from_json(model, "golden");
}

Strategy strategy_of(const Json& each) {
  Strategy strategy;
  strategy.zero.stage = each["parallel"] == "fsdp2" ? 3 : 0;
  strategy.precision.compute_dtype = DType::bf16;
  strategy.micro_batch = each["micro_batch"];
  strategy.gradient_accumulation = each["accumulation"];
  const std::string recompute = each["recompute"];
  if (recompute == "full") strategy.recompute.mode = RecomputeMode::full;
  if (recompute == "selective") {
    strategy.recompute = {.mode = RecomputeMode::selective, .products = true};
  }
  return strategy;
}

SoftwareMemory software_of(const Json& each) {
  const std::string name = each["parallel"] == "fsdp2" ? "torch-fsdp2" : "torch-ddp";
  SoftwareMemory memory = load_software(name).held.value();
  memory.loss_chunks = each["chunks"];
  if (each["precision"] == "pure") {
    memory.autocast = false;
    memory.weight = memory.gradient = memory.step_scratch = 2;
    memory.moments = 4;
  }
  return memory;
}

// DistributedDataParallel takes no fake tensors: its cases are one replica.
int ranks_of(const Json& each) {
  return each["parallel"] == "fsdp2" ? each["ranks"].get<int>() : 1;
}

HeldMemory held(const Json& each) {
  return held_memory(model_of(each), strategy_of(each), ranks_of(each), each["sequence"],
                     software_of(each));
}

TEST(HeldMemory, IsWhatMemTrackerCounts) {
  ASSERT_GE(golden()["cases"].size(), 40U);
  for (const Json& each : golden()["cases"]) {
    Json name = each;
    name.erase("bytes");
    const HeldMemory memory = held(each);
    const double total = each["bytes"]["total"];
    EXPECT_NEAR(static_cast<double>(memory.total()) / total, 1, kPeak) << name << memory.when;
    const TaggedBytes peak = memory.peak();
    for (std::size_t i = 0; i < kMemoryTags; ++i) {
      const auto tag = static_cast<MemoryTag>(i);
      if (tag == MemoryTag::kv_cache) continue;
      const double expected = each["bytes"][name_of(tag)];
      const double tolerance = kCategory * std::max(expected, 0.01 * total);
      EXPECT_NEAR(static_cast<double>(peak.tag[i]), expected, tolerance)
          << name_of(tag) << " " << name << memory.when;
    }
  }
}

// The peak lies in different moments, or only one of them is tested.
TEST(HeldMemory, PeaksOfTheGoldenCasesLieInAllKindsOfMoments) {
  std::vector<std::string> kinds = {"loss", "MLP", "end of the backward of", "step"};
  for (const Json& each : golden()["cases"]) {
    const std::string when = held(each).when;
    std::erase_if(kinds,
                  [&](const std::string& kind) { return when.find(kind) != std::string::npos; });
  }
  EXPECT_EQ(kinds, std::vector<std::string>{});
}

// Blocks as Inductor's partitioner cuts them (tests/parity/torch_compiled.py).
TEST(HeldMemory, CompiledBlocksKeepWhatThePartitionerHandsOn) {
  const Json compiled = Json::parse(read_file(
      (std::filesystem::path(ZL_SOURCE_DIR) / "tests/golden/memory/torch_compiled.json").string()));
  ASSERT_EQ(compiled["blocks"].size(), 8U);
  for (Json each : compiled["blocks"]) {
    SoftwareMemory memory = load_software("torch-fsdp2-compile").held.value();
    memory.autocast = each["autocast"];
    each["sequence"] = each["tokens"];
    const ModelConfig model = model_of(each);
    const ElementBytes element = element_bytes(DType::bf16, memory);
    const BlockBytes block = block_bytes({model, memory, element, {}, each["tokens"]}, {});
    const double tokens = each["tokens"], expected = each["bytes"]["activations"];
    EXPECT_NEAR(tokens * static_cast<double>(block.all()) / expected, 1, 1e-3) << each;
  }
}

// Of a case of tests/parity/deepspeed_memory.py.
HeldMemory held_by_deepspeed(const Json& each, const Json& models) {
  zl::Json model = zl::Json::parse(models[each["model"].get<std::string>()].dump());
  model.erase("tied");
  model["name"] = each["model"].get<std::string>();
  model["max_sequence"] = each["sequence"].get<std::int64_t>();
  zl::Json zero = zl::Json::parse(each["zero"].dump());
  zero["stage"] = each["stage"].get<int>();
  const zl::Json strategy = {{"train_micro_batch_size_per_gpu", each["micro_batch"].get<int>()},
                             {"gradient_accumulation_steps", each["accumulation"].get<int>()},
                             {"bf16", {{"enabled", true}}},
                             {"zero_optimization", zero},
                             {"x-zerolab", {{"recompute", each["recompute"].get<std::string>()}}}};
  const zl::Json document = {{"schema", 1},
                             {"model", model},
                             {"cluster", "h200"},
                             {"strategies", zl::Json::array({strategy})},
                             {"run", {{"ranks", each["ranks"].get<int>()}}}};
  const Scenario scenario = scenario_from_json(to_text(document, -1), "golden");
  return held_memory(scenario.model, scenario.strategies.front().strategy, each["ranks"],
                     each["sequence"], load_software("deepspeed").held.value());
}

TEST(HeldMemory, IsWhatDeepSpeedHolds) {
  const Json document = Json::parse(read_file(
      (std::filesystem::path(ZL_SOURCE_DIR) / "tests/golden/memory/deepspeed.json").string()));
  ASSERT_GE(document["cases"].size(), 40U);
  double sum = 0;
  for (const Json& each : document["cases"]) {
    const HeldMemory memory = held_by_deepspeed(each, document["models"]);
    const double ratio = static_cast<double>(memory.total()) / each["bytes"].get<double>();
    EXPECT_NEAR(ratio, 1, kDeepSpeed) << each << memory.when;
    sum += std::abs(ratio - 1);
  }
  EXPECT_LT(sum / static_cast<double>(document["cases"].size()), kDeepSpeedMean);
}

Json case_of(const std::string& parallel, const std::string& recompute) {
  return {{"model", "llama3-8b"}, {"parallel", parallel}, {"sequence", 8192},
          {"micro_batch", 1},     {"accumulation", 1},    {"recompute", recompute},
          {"precision", "mixed"}, {"chunks", 1},          {"ranks", 8}};
}

TEST(HeldMemory, GrowsWithWhatIsKept) {
  const auto total = [](const Json& each) { return held(each).total(); };
  const Json none = case_of("fsdp2", "none");
  EXPECT_GT(total(none), total(case_of("fsdp2", "selective")));
  EXPECT_GT(total(case_of("fsdp2", "selective")), total(case_of("fsdp2", "full")));
  Json more = none;
  more["ranks"] = 16;
  EXPECT_LT(total(more), total(none));
}

TEST(HeldMemory, RecomputationOfSomeBlocksLiesBetweenAllAndNone) {
  const Json each = case_of("fsdp2", "none");
  Strategy strategy = strategy_of(each);
  const auto total = [&] {
    return held_memory(model_of(each), strategy, 8, 8192, software_of(each)).total();
  };
  const std::int64_t none = total();
  strategy.recompute = {.mode = RecomputeMode::automatic, .blocks = 16};
  const std::int64_t half = total();
  strategy.recompute = {.mode = RecomputeMode::automatic, .blocks = 32};
  const std::int64_t all = total();
  EXPECT_EQ(all, held(case_of("fsdp2", "full")).total());
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(none + all) / 2,
              1e-6 * static_cast<double>(half));
  strategy.recompute = {.mode = RecomputeMode::every_k, .every = 4};
  EXPECT_LT(total(), none);
}

TEST(HeldMemory, ReplicasHoldFlatGradientsAndFullStates) {
  Json each = case_of("ddp", "none");
  const SoftwareMemory memory = software_of(each);
  const ModelConfig model = model_of(each);
  const HeldMemory alone = held_memory(model, strategy_of(each), 1, 8192, memory);
  const HeldMemory eight = held_memory(model, strategy_of(each), 8, 8192, memory);
  EXPECT_EQ(eight.total() - alone.total(), 4 * model.parameters());
  EXPECT_GT(eight.reserved, eight.total() + 4 * model.parameters());  // of the step before
  EXPECT_EQ(eight.device, eight.reserved + memory.context + memory.library);
}

TEST(HeldMemory, SaysOfWhatItKnowsNothing) {
  const Json each = case_of("fsdp2", "none");
  const SoftwareMemory memory = software_of(each);
  const ModelConfig model = model_of(each);
  Strategy strategy = strategy_of(each);
  EXPECT_EQ(why_not_held(model, strategy, memory), "");
  strategy.zero.stage = 1;
  EXPECT_EQ(why_not_held(model, strategy, memory), "ZeRO stage 1, which that software has not");
  strategy.zero.stage = 3;
  strategy.tensor.ranks = 2;
  EXPECT_EQ(why_not_held(model, strategy, memory), "tensor or pipeline parallelism");
  EXPECT_THROW(held_memory(model, strategy, 8, 8192, memory), Error);
}

}  // namespace
}  // namespace zl::sim
