#include "scenarios/run/software_bytes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"

namespace zl {
namespace {

constexpr double kBar = 1.64;  // standard deviations: 9 in 10

std::int64_t times(double factor, std::int64_t bytes) {
  return std::llround(factor * static_cast<double>(bytes));
}

}  // namespace

std::int64_t SoftwareBytes::least() const { return times(low, held.total()); }
std::int64_t SoftwareBytes::most() const { return times(high, held.total()); }

SoftwareBytesOrWhy software_bytes_or_why(const Scenario& scenario, const Strategy& asked) {
  const std::string name = scenario_software(scenario);
  if (name.empty() || name == kOwnSoftware) return {};
  const sim::Software software = load_software(name);
  if (!software.held) return {{}, "the profile " + software.name + " says nothing of it"};
  Strategy strategy = asked;
  if (strategy.recompute.mode == RecomputeMode::automatic && strategy.recompute.blocks == 0) {
    strategy = resolve_recompute(scenario, strategy,
                                 simulated_device(scenario, scenario_cluster(scenario)));
  }
  if (std::string why = sim::why_not_held(scenario.model, strategy, *software.held); !why.empty()) {
    return {{}, std::move(why)};
  }
  const int ranks = static_cast<int>(std::max<std::int64_t>(1, scenario.run.ranks));
  SoftwareBytes bytes{.software = software.name, .held = {}, .ranks = {}};
  bytes.ranks = sim::held_by_rank(scenario.model, strategy, ranks, scenario.run.sequence_length,
                                  *software.held);
  bytes.held = *std::ranges::max_element(bytes.ranks, {}, &sim::HeldMemory::device);
  bytes.low = std::exp(-kBar * software.held->error);
  bytes.high = std::exp(kBar * software.held->error);
  return {std::move(bytes), ""};
}

std::optional<SoftwareBytes> software_bytes(const Scenario& scenario, const Strategy& strategy) {
  return software_bytes_or_why(scenario, strategy).bytes;
}

}  // namespace zl
