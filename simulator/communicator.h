// The recording communicator: one rank of any number; nothing travels.
// Ownership: a value. Threads: used by one rank's thread.
#pragma once

#include "core/device/communicator.h"
#include "core/parallel/mesh.h"

namespace zl::sim {

class Communicator final : public zl::Communicator {
 public:
  // Of the world of a mesh.
  Communicator(int rank, const Mesh& mesh) : Communicator(rank, mesh.ranks(), mesh, rank) {}

  int rank() const override { return rank_; }
  int size() const override { return ranks_; }
  std::string link() const override { return "sim"; }
  void run(StreamId, const Collective&, Timing*) override {}
  void exchange(StreamId, std::span<const Message>, Timing*) override {}
  // The world along the axes of its mesh only, in the order that zl::Groups asks: the other ranks'
  // colors are not there to count them. Error{failed} for anything else.
  std::unique_ptr<zl::Communicator> split(int color, int key) override;

 private:
  Communicator(int rank, int ranks, const Mesh& mesh, int world_rank)
      : rank_(rank), ranks_(ranks), mesh_(mesh), world_rank_(world_rank) {}

  int rank_, ranks_;
  Mesh mesh_;
  int world_rank_;
  std::size_t next_axis_ = 0;
};

}  // namespace zl::sim
