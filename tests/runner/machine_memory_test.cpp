// The memory of a machine binds simulated runs as it binds real ones.
#include <gtest/gtest.h>

#include <cstdlib>

#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/largest.h"
#include "scenarios/run/simulate.h"

namespace zl {
namespace {

struct MachineMemory : testing::Test {
  ~MachineMemory() override { unsetenv("ZEROLAB_MEMORY"); }
  // The two ranks of the smallest GPT, device and host tiers.
  static Scenario small() {
    return scenario_from_json(R"({
        "model": "gpt2-tiny",
        "strategies": ["zero-0", "zero-2", "zero-2-offload-cpu", "zero-3-offload-cpu"],
        "run": {"ranks": 2, "steps": 2, "data": "synthetic", "micro_batch": 1}})",
                              "machine_memory.json");
  }
  Runner runner;
};

TEST_F(MachineMemory, EndsSimulatedAndRealRunsWithOneMessage) {
  int fitted = 0, too_large = 0;
  const Scenario scenario = small();
  for (const char* memory : {"1MiB", "3MiB", "4MiB", "5MiB", "8MiB", "64MiB"}) {
    setenv("ZEROLAB_MEMORY", memory, 1);
    for (const ImportedStrategy& strategy : scenario.strategies) {
      const RunResult real = runner.run(scenario, strategy, "cpu");
      const RunResult predicted = runner.run(scenario, strategy, "sim");
      EXPECT_EQ(real.outcome, predicted.outcome) << strategy.strategy.name << " in " << memory;
      EXPECT_EQ(real.message, predicted.message) << strategy.strategy.name << " in " << memory;
      EXPECT_EQ(real.reserved_host, predicted.reserved_host) << strategy.strategy.name;
      ++(real.outcome == Outcome::ok ? fitted : too_large);
    }
  }
  EXPECT_GE(fitted, 6);
  EXPECT_GE(too_large, 6);
}

TEST_F(MachineMemory, IsTheBudgetOfTheLargestModel) {
  Scenario scenario = small();
  for (const ImportedStrategy& strategy : scenario.strategies) {
    setenv("ZEROLAB_MEMORY", "24MiB", 1);
    const LargestFit less = largest_fit(runner, scenario, strategy);
    setenv("ZEROLAB_MEMORY", "48MiB", 1);
    const LargestFit more = largest_fit(runner, scenario, strategy);
    EXPECT_TRUE(less.limited) << strategy.strategy.name;
    EXPECT_GT(more.layers, less.layers) << strategy.strategy.name;
  }
}

// Free memory changes by the second; a headroom changes by edits alone.
TEST_F(MachineMemory, OfPredictionsStaysAsItWasAtTheFirst) {
  const std::int64_t before = load_cluster("local").host_memory;
  const std::vector<char> held(256 << 20, 1);
  EXPECT_EQ(load_cluster("local").host_memory, before) << held.size();
}

TEST_F(MachineMemory, IsTheCapacityOfARankOfTheLocalMachine) {
  setenv("ZEROLAB_MEMORY", "1GiB", 1);
  Scenario scenario = small();
  const auto capacity = [&] { return memory_budget(scenario, scenario_cluster(scenario)); };
  EXPECT_EQ(capacity(), 512 << 20);
  scenario.run.device_memory = 100 << 20;
  EXPECT_EQ(capacity(), 100 << 20);
  scenario.run.device_memory = std::int64_t{2} << 30;
  EXPECT_EQ(capacity(), 512 << 20);
}

// 12 bytes of state of each of 175 billion parameters are 2.1 TB, in nodes of 2 TB and 512 GB.
TEST_F(MachineMemory, OfANodeHoldsTheOffloadOfItsRanks) {
  const auto run = [&](const char* cluster, int ranks) {
    const Scenario scenario = scenario_from_json(
        R"({"model": "gpt3-175b", "strategies": ["zero-3-offload-cpu"], "cluster": ")" +
            std::string(cluster) + R"(", "run": {"ranks": )" + std::to_string(ranks) +
            R"(, "steps": 2, "micro_batch": 1, "sequence_length": 128}})",
        "node.json");
    return runner.run(scenario, scenario.strategies.front(), "sim");
  };
  const RunResult one_node = run("8xh100", 8);
  EXPECT_EQ(one_node.outcome, Outcome::out_of_memory);
  EXPECT_NE(one_node.message.find("this rank's share of the machine's memory"), std::string::npos)
      << one_node.message;
  EXPECT_NE(one_node.message.find("largest holders: "), std::string::npos);
  EXPECT_EQ(run("16xh100", 16).outcome, Outcome::ok);
  EXPECT_EQ(run("32xv100", 32).outcome, Outcome::out_of_memory);
}

}  // namespace
}  // namespace zl
