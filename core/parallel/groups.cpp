#include "core/parallel/groups.h"

#include <string>

#include "core/base/error.h"

namespace zl {

Groups::Groups(Communicator& world, const Mesh& mesh) : world_(world), mesh_(mesh) {
  mesh.check(world.size());
  for (std::size_t i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    const int size = mesh.size(axis);
    if (!mesh.has_group(axis) || size == world.size()) continue;
    split_[i] = world.split(mesh.group(world.rank(), axis), mesh.coordinate(world.rank(), axis));
  }
}

Communicator& Groups::of(Axis axis) const {
  if (size(axis) == world_.size()) return world_;
  const auto& split = split_[static_cast<std::size_t>(axis)];
  ZL_CHECK(split != nullptr, std::string("the ") + name_of(axis) + " axis has one rank");
  return *split;
}

}  // namespace zl
