#include "scenarios/planner/shortage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/bytes.h"
#include "scenarios/run/judge.h"
#include "simulator/memory_curve.h"

namespace zl {
namespace {

// "parameter 'qkv'" and its bytes at the peak, the largest first.
std::vector<std::pair<std::string, std::int64_t>> holders_at_peak(const Trace& trace) {
  const std::int32_t event = sim::peak_event(trace, MemorySpace::device);
  std::map<std::string, std::int64_t> holders;
  for (const auto& block : sim::live_after(trace, event, MemorySpace::device)) {
    holders[std::string(name_of(block.tag)) + " '" + block.what + "'"] += block.bytes;
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(holders.begin(), holders.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string of_device(const Recording& recording, std::int64_t budget, const MemoryNeed& need) {
  std::string text = need_text(need, budget) + "; " + format_bytes(need.reserved - budget) +
                     " more than the " + format_bytes(budget) + " of the device";
  const auto holders = holders_at_peak(recording.trace);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, holders.size()); ++i) {
    text +=
        (i == 0 ? "; largest: " : ", ") + holders[i].first + " " + format_bytes(holders[i].second);
  }
  return text;
}

}  // namespace

std::string shortage_text(const Recording& unlimited, const DeviceProperties& device,
                          std::int64_t host_budget, const MemoryNeed& need) {
  const RunResult& books = unlimited.books;
  if (!within_limit(books.peak_device.total(), device.memory)) {
    return of_device(unlimited, device.memory, need);
  }
  if (!within_limit(books.peak_host.total(), host_budget)) {
    return "needs " + format_bytes(books.peak_host.total()) + " of host memory, " +
           format_bytes(books.peak_host.total() - host_budget) + " more than its budget of " +
           format_bytes(host_budget);
  }
  const std::int64_t on_host =
      books.reserved_host + (device.memory_is_host ? books.reserved_device : 0);
  return "needs " + format_bytes(on_host) + " of its machine's memory, of which a rank has " +
         format_bytes(device.host_memory);
}

}  // namespace zl
