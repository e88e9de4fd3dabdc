#include "scenarios/run/judge.h"

#include <algorithm>
#include <vector>

#include "core/rank/pool.h"
#include "scenarios/files/clusters.h"
#include "simulator/allocations.h"

namespace zl {
namespace {

// Pools that share memory take smaller slabs once an eighth of the rest is less than a usual one.
bool far_within(std::int64_t bytes, std::int64_t share) {
  return share == 0 || bytes + 8 * Pool::kSlab <= share;
}

}  // namespace

DeviceProperties simulated_device(const Scenario& scenario, const sim::ClusterSpec& cluster) {
  DeviceProperties device = sim::device_properties(cluster);
  device.memory = memory_budget(scenario, cluster);
  return device;
}

DeviceVerdict judge_device(const Scenario& scenario, const Strategy& strategy,
                           const DeviceProperties& device) {
  DeviceVerdict verdict{bytes_or_why(scenario, strategy).bytes, {}, {}, device};
  if (!verdict.bytes) return verdict;
  const HeldBySoftware held = verdict.held();
  verdict.of_pools.memory = 0;
  if (held.within(device.memory) == Fits::no) {
    verdict.refusal = refusal_text(scenario, held, device.memory);
    verdict.need = {.in_use = held.in_use, .reserved = held.device};
  }
  return verdict;
}

Verdict judge(const Scenario& scenario, const Strategy& strategy, const DeviceProperties& device,
              const ProgramOptions& options) {
  const DeviceVerdict first = judge_device(scenario, strategy, device);
  if (!first.refusal.empty()) return {nullptr, first.refusal, first.need, first.held()};
  try {
    auto recording = record_run(scenario, strategy, first.of_pools, options);
    return {std::make_shared<Recording>(std::move(recording)), {}, {}, first.held()};
  } catch (const OutOfMemory& refused) {
    return {nullptr, refused.what(), {}, first.held()};
  }
}

MemoryNeed memory_need(const Recording& unlimited) {
  MemoryNeed need = memory_need(unlimited.books);
  const std::int64_t close = need.in_use / 64;
  if (need.fragmentation() <= close) return need;
  std::vector<sim::Allocations> ranks;
  for (const sim::RankTrace& rank : rank_traces(unlimited)) {
    ranks.emplace_back(*rank.trace, MemorySpace::device);
  }
  std::int64_t refused = need.in_use - 1;
  while (need.reserved - refused > close + 1) {
    const std::int64_t budget = refused + (need.reserved - refused) / 2;
    const bool fits = std::ranges::all_of(
        ranks, [budget](const sim::Allocations& rank) { return rank.fit(budget); });
    (fits ? need.reserved : refused) = budget;
  }
  return need;
}

std::optional<bool> foreseen(const RunResult& unlimited, const DeviceProperties& device,
                             std::int64_t host_budget) {
  const auto in_share = [&](std::int64_t of_host, std::int64_t of_device) {
    return of_host + (device.memory_is_host ? of_device : 0);
  };
  const std::int64_t device_peak = unlimited.peak_device.total();
  const std::int64_t host_peak = unlimited.peak_host.total();
  if (!within_limit(device_peak, device.memory) || !within_limit(host_peak, host_budget) ||
      !within_limit(in_share(host_peak, device_peak), device.host_memory)) {
    return false;
  }
  if (within_limit(unlimited.reserved_device, device.memory) &&
      within_limit(unlimited.reserved_host, host_budget) &&
      far_within(in_share(unlimited.reserved_host, unlimited.reserved_device),
                 device.host_memory)) {
    return true;
  }
  return std::nullopt;
}

}  // namespace zl
