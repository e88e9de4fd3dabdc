#include "scenarios/run/judge.h"

#include "core/rank/pool.h"
#include "scenarios/files/clusters.h"

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

Verdict judge(const Scenario& scenario, const Strategy& strategy, const DeviceProperties& device,
              const ProgramOptions& options) {
  try {
    return {std::make_shared<Recording>(record_run(scenario, strategy, device, options)), {}};
  } catch (const OutOfMemory& refused) {
    return {nullptr, refused.what()};
  }
}

MemoryNeed memory_need(const Scenario& scenario, const Strategy& strategy, DeviceProperties device,
                       ProgramOptions options, const RunResult& unlimited) {
  MemoryNeed need = memory_need(unlimited);
  const std::int64_t close = need.in_use / 64;
  if (need.fragmentation() <= close) return need;
  options.on_step = nullptr;
  options.host_memory = 0;
  device.host_memory = 0;
  std::int64_t refused = need.in_use - 1;
  while (need.reserved - refused > close + 1) {
    device.memory = refused + (need.reserved - refused) / 2;
    if (judge(scenario, strategy, device, options).fits()) {
      need.reserved = device.memory;
    } else {
      refused = device.memory;
    }
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
