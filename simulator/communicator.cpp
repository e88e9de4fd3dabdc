#include "simulator/communicator.h"

#include "core/base/error.h"

namespace zl::sim {

std::unique_ptr<zl::Communicator> Communicator::split(int color, int key) {
  for (std::size_t tried = 0; ranks_ == mesh_.ranks() && tried < kAxes; ++tried) {
    const auto axis = static_cast<Axis>(next_axis_++ % kAxes);
    const int size = mesh_.size(axis);
    if (!mesh_.has_group(axis) || size == ranks_) continue;  // as Groups
    if (mesh_.group(world_rank_, axis) != color || mesh_.coordinate(world_rank_, axis) != key) {
      continue;
    }
    return std::unique_ptr<zl::Communicator>(new Communicator(key, size, mesh_, world_rank_));
  }
  throw Error(ErrorCode::failed, "the recording communicator of rank " +
                                     std::to_string(world_rank_) +
                                     " is split along the axes of its mesh only, not by color " +
                                     std::to_string(color) + ", key " + std::to_string(key));
}

}  // namespace zl::sim
