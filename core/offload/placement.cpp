#include "core/offload/placement.h"

#include <string>

#include "core/base/error.h"

namespace zl {

std::vector<SubGroup> make_sub_groups(const Partition& partition, const OffloadConfig& offload) {
  std::vector<SubGroup> groups;
  for (int p = 0; p < static_cast<int>(partition.size()); ++p) {
    const Partition::Slot& slot = partition.slot(p);
    const bool fits =
        !groups.empty() && groups.back().elements + slot.chunk <= offload.sub_group_size;
    if (!fits) groups.push_back({p, p, slot.shard_offset, 0, false});
    groups.back().last = p + 1;
    groups.back().elements += slot.chunk;
  }
  if (offload.optimizer == Tier::device) return groups;
  const auto kept =
      static_cast<std::size_t>((1.0 - offload.ratio) * static_cast<double>(groups.size()));
  for (std::size_t i = kept; i < groups.size(); ++i) groups[i].on_host = true;
  return groups;
}

int first_host_parameter(const Partition& partition, const OffloadConfig& offload) {
  for (const SubGroup& group : make_sub_groups(partition, offload)) {
    if (group.on_host) return group.first;
  }
  return static_cast<int>(partition.size());
}

void check_offload(const Strategy& strategy) {
  const OffloadConfig& offload = strategy.offload;
  const std::string zero = "zero_optimization.";
  const auto refuse = [](const std::string& what) { throw Error(ErrorCode::invalid, what); };
  if (offload.optimizer != Tier::device && strategy.zero_stage == 0) {
    refuse(zero + "offload_optimizer.device: needs stage 1, 2 or 3, not 0");
  }
  if (offload.parameters != Tier::device && strategy.zero_stage != 3) {
    refuse(zero + "offload_param.device: needs stage 3, not " +
           std::to_string(strategy.zero_stage));
  }
  if (offload.parameters != Tier::device && offload.optimizer == Tier::device) {
    refuse(zero +
           "offload_param.device: weights on the host are updated there; set "
           "offload_optimizer.device to \"cpu\" or \"nvme\" too");
  }
  const OptimizerKind kind = strategy.optimizer.kind;
  if (offload.optimizer != Tier::device && (kind == OptimizerKind::lamb || is_onebit(kind))) {
    refuse(
        "optimizer.type: LAMB and one-bit optimizers are not updated on the host; use AdamW, "
        "Adam or SGD, or remove " +
        zero + "offload_optimizer");
  }
  if (offload.any() && is_onebit(strategy.optimizer.kind)) {
    refuse("optimizer.type: the 1-bit optimizers exchange momenta on the device; remove " + zero +
           "offload_optimizer");
  }
  if (offload.delayed_update_after >= 0 && offload.parameters != Tier::device) {
    refuse(
        "x-zerolab.delayed_param_update: needs the weights on the device; "
        "remove offload_param");
  }
  if (offload.files() && offload.nvme_path.empty()) {
    refuse(zero + "offload_optimizer.nvme_path: \"nvme\" needs a folder for its files");
  }
}

}  // namespace zl
