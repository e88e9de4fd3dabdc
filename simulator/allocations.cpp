#include "simulator/allocations.h"

#include <unordered_map>

#include "core/rank/pool.h"
#include "simulator/device.h"

namespace zl::sim {

Allocations::Allocations(const Trace& trace, MemorySpace space) : space_(space) {
  std::unordered_map<std::int64_t, std::size_t> live;  // buffer by address
  std::vector<std::size_t> unused;
  for (const TraceEvent& event : trace.events()) {
    if (event.space != space) continue;
    if (event.type == EventType::allocate) {
      if (unused.empty()) unused.push_back(buffers_++);
      live[event.id] = unused.back();
      changes_.push_back({unused.back(), event.bytes_written});
      unused.pop_back();
    } else if (event.type == EventType::free) {
      const auto found = live.find(event.id);
      changes_.push_back({found->second});
      unused.push_back(found->second);
      live.erase(found);
    }
  }
}

bool Allocations::fit(std::int64_t budget) const {
  Device device({.name = "sim"}, {});
  Ledger ledger;
  Pool pool(device, space_, ledger, budget);
  std::vector<Buffer> buffers(buffers_);
  try {
    for (const Change& change : changes_) {
      Buffer& buffer = buffers[change.buffer];
      if (change.bytes < 0) {
        buffer.reset();
      } else {
        buffer = pool.allocate(change.bytes, MemoryTag::activation, {});
      }
    }
  } catch (const OutOfMemory&) {
    return false;
  }
  return true;
}

}  // namespace zl::sim
