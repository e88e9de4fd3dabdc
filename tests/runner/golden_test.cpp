// Golden scenarios: the books of each strategy on the CPU and on the recording device equal each
// other and the numbers on file. To accept new numbers after a deliberate change:
// ZL_UPDATE_GOLDEN=1 test_runner.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/simulate.h"
#include "tests/engine/runs.h"

namespace zl {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json books_of(const RunResult& run) {
  Json books{{"peak_bytes", Json::object()}};
  for (std::size_t tag = 0; tag < kMemoryTags; ++tag) {
    if (static_cast<MemoryTag>(tag) == MemoryTag::kv_cache) continue;  // trainings have none
    books["peak_bytes"][name_of(static_cast<MemoryTag>(tag))] = run.peak_device.tag[tag];
  }
  books["reserved_bytes"] = run.reserved_device;
  books["wire_bytes_per_step"] = run.wire_bytes_per_step;
  books["ops"] = run.op_count;
  for (const CollectiveTotals& c : run.communication) {
    books["communication"][c.collective + " " + c.group] = {{"count", c.count}, {"bytes", c.bytes}};
  }
  return books;
}

TEST(Golden, BooksAreTheNumbersOnFileOnBothBackends) {
  const bool update = std::getenv("ZL_UPDATE_GOLDEN") != nullptr;
  const Runner runner;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(ZL_SOURCE_DIR) / "tests/golden/books")) {
    ++files;
    Json document = Json::parse(read_file(entry.path().string()));
    const Scenario scenario =
        scenario_from_json(document["scenario"].dump(), entry.path().string());
    Json found = Json::object();
    for (const ImportedStrategy& strategy : scenario.strategies) {
      const RunResult real = runner.run(scenario, strategy, "cpu");
      const RunResult twin = runner.run(scenario, strategy, "sim");
      const std::string name = strategy.strategy.name;
      EXPECT_EQ(books_of(real), books_of(twin)) << entry.path() << " " << name;
      EXPECT_EQ(real.op_sequence_hash, twin.op_sequence_hash) << entry.path() << " " << name;
      found[name] = books_of(real);
      if (update) continue;
      EXPECT_EQ(document["expected"][name], found[name]) << entry.path() << " " << name;
    }
    document["expected"] = found;
    if (update) std::ofstream(entry.path()) << document.dump(2) << "\n";
  }
  EXPECT_GE(files, 2);
}

Scenario recompute_scenario() {
  return scenario_from_json(R"({"schema": 1, "model": "gpt2-tiny", "cluster": "local",
    "run": {"ranks": 2, "steps": 2, "micro_batch": 4, "data": "synthetic"}, "strategies": ["zero-2"]})",
                            "inline");
}

// Whether the strategy with its first `blocks` recomputed runs within the budget on the recording
// device.
bool fits(const Scenario& scenario, Strategy strategy, std::int64_t blocks, std::int64_t budget) {
  strategy.recompute.mode = RecomputeMode::automatic;
  strategy.recompute.blocks = blocks;
  ProgramOptions options;
  options.steps = 2;
  options.sequence_length = scenario.run.sequence_length;
  options.device_memory = budget;
  try {
    test::run_sim(static_cast<int>(scenario.run.ranks), scenario.model, strategy, options);
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

TEST(AutomaticRecompute, TakesTheFewestBlocksThatFit) {
  Scenario scenario = recompute_scenario();
  Strategy& strategy = scenario.strategies[0].strategy;
  strategy.recompute.mode = RecomputeMode::automatic;
  bool some_in_between = false;
  for (std::int64_t budget = 512 << 10; budget < (8 << 20); budget += 64 << 10) {
    std::int64_t fewest = 0;
    while (fewest < scenario.model.layers && !fits(scenario, strategy, fewest, budget)) ++fewest;
    DeviceProperties device;
    device.memory = budget;
    EXPECT_EQ(resolve_recompute(scenario, strategy, device).recompute.blocks, fewest) << budget;
    scenario.run.device_memory = budget;
    const RunResult run = Runner().run(scenario, scenario.strategies[0], "cpu");
    EXPECT_EQ(run.outcome == Outcome::ok, fits(scenario, strategy, fewest, budget)) << budget;
    some_in_between = some_in_between || (fewest > 0 && fewest < scenario.model.layers);
  }
  EXPECT_TRUE(some_in_between) << "no budget needed a partial recomputation: the test saw nothing";
}

// Of a pipeline each rank as few as it needs: the first holds the most micro-batches.
TEST(AutomaticRecompute, TakesOfEachRankTheFewestBlocksThatFit) {
  Scenario scenario = recompute_scenario();
  scenario.model.layers = 6;
  Strategy& strategy = scenario.strategies[0].strategy;
  strategy.recompute.mode = RecomputeMode::automatic;
  strategy.pipeline.ranks = 2;
  strategy.micro_batch = 2;
  strategy.gradient_accumulation = 4;
  ProgramOptions options = program_options(scenario);
  bool some_differ = false;
  for (std::int64_t budget = 1 << 20; budget < (8 << 20); budget += 256 << 10) {
    DeviceProperties device;
    device.memory = budget;
    std::vector<std::int64_t> fewest{3, 3};
    for (const std::int64_t blocks : {2, 1, 0}) {
      Strategy all = strategy;
      all.recompute.blocks = blocks;
      const std::vector<bool> within = ranks_within(scenario, all, device, options);
      for (std::size_t rank = 0; rank < 2; ++rank) {
        if (within[rank]) fewest[rank] = blocks;
      }
    }
    const Strategy resolved = resolve_recompute(scenario, strategy, device);
    EXPECT_EQ(resolved.recompute.stage_blocks, fewest) << budget;
    some_differ = some_differ || (fewest[0] > fewest[1] && fewest[0] < 3);
    scenario.run.device_memory = budget;
    const RunResult real = Runner().run(scenario, scenario.strategies[0], "cpu");
    const std::vector<bool> within = ranks_within(scenario, resolved, device, options);
    EXPECT_EQ(real.outcome == Outcome::ok, within[0] && within[1]) << budget;
  }
  EXPECT_TRUE(some_differ) << "no budget needed other numbers: the test saw nothing";
  // Software with one number for all stages gets one.
  scenario.run.software = "megatron-core";
  scenario.run.device_memory = 0;
  DeviceProperties device;
  device.memory = 3 << 20;
  EXPECT_TRUE(resolve_recompute(scenario, strategy, device).recompute.stage_blocks.empty());
}

TEST(Runner, OutOfMemoryIsAResultThatNamesRequestAndHolders) {
  Scenario scenario = recompute_scenario();
  scenario.run.device_memory = 600 << 10;
  for (const char* backend : {"cpu", "sim"}) {
    const RunResult run = Runner().run(scenario, scenario.strategies[0], backend);
    EXPECT_EQ(run.outcome, Outcome::out_of_memory);
    EXPECT_NE(run.message.find("requested for"), std::string::npos) << run.message;
    EXPECT_NE(run.message.find("largest holders: "), std::string::npos) << run.message;
  }
}

}  // namespace
}  // namespace zl
