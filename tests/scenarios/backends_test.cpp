#include <gtest/gtest.h>

#include "core/base/error.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/runner.h"

namespace zl {
namespace {

TEST(Backends, SayWhatTheyCanDo) {
  const Runner runner;
  const BackendRegistry& backends = runner.backends();
  EXPECT_TRUE(backends.capabilities("sim").is_recording);
  EXPECT_FALSE(backends.capabilities("cpu").is_recording);
  EXPECT_FALSE(backends.capabilities("cuda").is_recording);  // also where there is none
  EXPECT_TRUE(backends.capabilities("cpu").takes_processes);
  EXPECT_FALSE(backends.capabilities("cuda").takes_processes);
  EXPECT_FALSE(backends.capabilities("cuda").takes_link_bandwidth);
  EXPECT_EQ(backends.capabilities("cuda").cluster, "local-cuda");
  try {
    backends.capabilities("abacus");
    ADD_FAILURE() << "an unknown backend";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
  }
}

TEST(Backends, ResultsOfARecordingArePredictions) {
  ScenarioOverrides overrides;
  overrides.strategies = {"zero-1"};
  overrides.steps = 2;
  overrides.data = "synthetic";
  const Runner runner;
  for (const char* memory : {"1GiB", "1KiB"}) {
    overrides.device_memory = memory;
    const Scenario scenario = load_scenario("gpt2-tiny", overrides);
    for (const std::string backend : {"cpu", "sim"}) {
      const RunResult result = runner.run(scenario, scenario.strategies[0], backend);
      EXPECT_EQ(result.predicted, backend == "sim") << backend << " " << memory;
      EXPECT_EQ(result.outcome == Outcome::ok, memory == std::string("1GiB"));
    }
  }
}

}  // namespace
}  // namespace zl
