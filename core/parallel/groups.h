// The communicators of one rank, one for each axis of the mesh that has more than one rank, and for
// data: split
// from the world's, or the world's own where an axis covers it.
// Ownership: refers to the world's communicator, owns the others. Threads: one rank's thread.
#pragma once

#include <array>
#include <memory>

#include "core/device/communicator.h"
#include "core/parallel/mesh.h"

namespace zl {

class Groups {
 public:
  // Every rank of `world` must make its own. Error{invalid}: Mesh::check.
  Groups(Communicator& world, const Mesh& mesh);

  const Mesh& mesh() const { return mesh_; }
  Communicator& world() const { return world_; }
  int rank(Axis axis) const { return mesh_.coordinate(world_.rank(), axis); }
  int size(Axis axis) const { return mesh_.size(axis); }
  // Error{failed} for an axis of one rank that does not cover the world: nothing is to be sent.
  Communicator& of(Axis axis) const;

 private:
  Communicator& world_;
  Mesh mesh_;
  std::array<std::unique_ptr<Communicator>, kAxes> split_;
};

}  // namespace zl
