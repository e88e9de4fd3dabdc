#include "core/offload/placement.h"

namespace zl {

Placement::Placement(const Partition& partition, const OffloadConfig& offload)
    : parameters_(static_cast<int>(partition.size())), first_on_host_(parameters_) {
  for (int p = 0; p < parameters_; ++p) {
    const Partition::Slot& slot = partition.slot(p);
    const bool fits =
        !groups_.empty() && groups_.back().elements + slot.chunk <= offload.sub_group_size;
    if (!fits) groups_.push_back({.first = p, .last = p, .begin = slot.shard_offset});
    groups_.back().last = p + 1;
    groups_.back().elements += slot.chunk;
  }
  if (offload.optimizer == Tier::device) return;
  const auto kept =
      static_cast<std::size_t>((1.0 - offload.ratio) * static_cast<double>(groups_.size()));
  for (std::size_t i = kept; i < groups_.size(); ++i) groups_[i].on_host = true;
  if (kept < groups_.size()) first_on_host_ = groups_[kept].first;
}

}  // namespace zl
