// Which model state lives where. Sub-groups cut the optimizer state of one rank for updates off the
// device: consecutive parameters, so each is one contiguous range of every flat shard buffer.
// Ownership: values. Threads: immutable.
#pragma once

#include <vector>

#include "core/base/memory.h"
#include "core/offload/offload_config.h"
#include "core/parallel/partition.h"

namespace zl {

struct SubGroup {
  int first = 0, last = 0;  // parameters [first, last)
  std::int64_t begin = 0;   // elements, in the shard buffers
  std::int64_t elements = 0;
  bool on_host = false;  // stepped by the host
};

class Placement {
 public:
  // Sub-groups of at most offload.sub_group_size elements, unless one parameter is larger. All on
  // the device when the optimizer is not offloaded; otherwise the first int((1 - ratio) * count)
  // are (DeepSpeed's Twin-Flow), so the share that really moves comes in whole sub-groups.
  Placement(const Partition& partition, const OffloadConfig& offload);

  const std::vector<SubGroup>& groups() const { return groups_; }
  // The first parameter whose state and reduced gradient live on the host; the number of parameters
  // when none do.
  int first_on_host() const { return first_on_host_; }
  bool any_on_host() const { return first_on_host_ < parameters_; }

 private:
  std::vector<SubGroup> groups_;
  int parameters_, first_on_host_;
};

// Where a run keeps what it offloads.
inline MemorySpace host_space(const OffloadConfig& offload) {
  return offload.pin_memory ? MemorySpace::pinned_host : MemorySpace::host;
}

}  // namespace zl
