// The one judge, and what a recording without limits foretells of it.
#include "scenarios/run/judge.h"

#include <gtest/gtest.h>

#include "core/rank/pool.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/runner.h"
#include "simulator/allocations.h"

namespace zl {
namespace {

struct Case {
  Scenario scenario;
  Strategy strategy;
  DeviceProperties device;  // without limits
  RunResult unlimited;

  Verdict within(std::int64_t memory, std::int64_t share, std::int64_t host_budget) const {
    ProgramOptions options = program_options(scenario);
    options.host_memory = host_budget;
    return judge(scenario, strategy, limited(memory, share), options);
  }
  DeviceProperties limited(std::int64_t memory, std::int64_t share) const {
    DeviceProperties out = device;
    out.memory = memory;
    out.host_memory = share;
    return out;
  }
};

Case case_of(const std::string& strategy, bool memory_is_host) {
  ScenarioOverrides overrides;
  overrides.strategies = {strategy};
  Case out;
  out.scenario = load_scenario("tiny-gpt2", overrides);
  out.strategy = out.scenario.strategies[0].strategy;
  out.device = sim::device_properties(scenario_cluster(out.scenario));
  out.device.memory_is_host = memory_is_host;
  out.device.memory = out.device.host_memory = 0;
  const Verdict verdict = out.within(0, 0, 0);
  EXPECT_TRUE(verdict.fits()) << verdict.refusal;
  out.unlimited = verdict.recording->books;
  return out;
}

std::string limits_text(std::int64_t memory, std::int64_t share, std::int64_t host) {
  return std::to_string(memory) + " of the device, " + std::to_string(share) + " of the machine, " +
         std::to_string(host) + " of the host";
}

// Whatever is foreseen is what recording within the limits gives, to the byte.
TEST(Judge, WhatIsForeseenComesTrue) {
  int yes = 0, no = 0, open = 0;
  for (const char* name : {"zero-0", "zero-3-offload-cpu"}) {
    for (const bool memory_is_host : {false, true}) {
      const Case each = case_of(name, memory_is_host);
      const std::int64_t device = each.unlimited.reserved_device,
                         host = each.unlimited.reserved_host;
      const std::int64_t peak = each.unlimited.peak_device.total();
      for (const std::int64_t memory : {std::int64_t{0}, peak - 1, peak, device - 1, device}) {
        for (const std::int64_t share :
             {std::int64_t{0}, peak - 1, device + host, device + host + 8 * Pool::kSlab}) {
          for (const std::int64_t budget : {std::int64_t{0}, host / 2, host}) {
            const auto foretold = foreseen(each.unlimited, each.limited(memory, share), budget);
            ++(!foretold ? open : *foretold ? yes : no);
            if (!foretold) continue;
            const Verdict verdict = each.within(memory, share, budget);
            ASSERT_EQ(*foretold, verdict.fits()) << limits_text(memory, share, budget);
            EXPECT_EQ(verdict.refusal.empty(), verdict.fits());
            if (!verdict.fits()) continue;
            EXPECT_EQ(verdict.recording->books.reserved_device, device);
            EXPECT_EQ(verdict.recording->books.reserved_host, host);
          }
        }
      }
    }
  }
  EXPECT_GT(yes, 20);
  EXPECT_GT(no, 20);
  EXPECT_GT(open, 5);
}

// Doing the allocations of a recording again decides what the program itself would.
TEST(Judge, AllocationsFitWhereTheProgramDoes) {
  int fit = 0, not_fit = 0;
  for (const char* name : {"zero-0", "zero-2", "zero-3-recompute"}) {
    const Case each = case_of(name, false);
    const Verdict unlimited = each.within(0, 0, 0);
    const sim::Allocations allocations(unlimited.recording->trace, MemorySpace::device);
    const std::int64_t peak = each.unlimited.peak_device.total(),
                       reserved = each.unlimited.reserved_device;
    std::vector<std::int64_t> budgets{peak / 2, peak, reserved - 1, reserved};
    for (std::int64_t more = 512; more < peak / 8; more *= 2) budgets.push_back(peak + more);
    for (const std::int64_t budget : budgets) {
      const bool fits = allocations.fit(budget);
      EXPECT_EQ(fits, each.within(budget, 0, 0).fits()) << name << " in " << budget;
      ++(fits ? fit : not_fit);
    }
    const std::int64_t need = memory_need(*unlimited.recording).reserved;
    EXPECT_TRUE(each.within(need, 0, 0).fits());
    EXPECT_LE(need, reserved);
  }
  EXPECT_GT(fit, 5);
  EXPECT_GT(not_fit, 5);
}

}  // namespace
}  // namespace zl
