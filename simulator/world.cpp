#include "simulator/world.h"

#include <deque>

#include "core/base/error.h"
#include "simulator/communicator.h"

namespace zl::sim {
namespace {

class RecordingWorld final : public World {
 public:
  RecordingWorld(const Mesh& mesh, const SimOptions& sim) : ranks_(mesh.ranks()) {
    for (const int rank : sim.recorded) add(rank, mesh, sim);
    if (members_.empty()) add(0, mesh, sim);
  }

  int ranks() const override { return ranks_; }
  int executed_ranks() const override { return static_cast<int>(members_.size()); }
  bool is_recording() const override { return true; }
  void run(const std::function<void(RankHandle)>& program) override {
    for (Member& member : members_) program(RankHandle{member.device, member.communicator});
  }

 private:
  struct Member {
    Device device;
    Communicator communicator;
  };
  void add(int rank, const Mesh& mesh, const SimOptions& sim) {
    ZL_CHECK(rank >= 0 && rank < ranks_, "a recorded rank is one of the world");
    members_.push_back({Device(sim.device, sim.answers), Communicator(rank, mesh)});
  }

  int ranks_;
  std::deque<Member> members_;  // programs keep references to them
};

}  // namespace

std::unique_ptr<World> make_world(const WorldOptions& options, const SimOptions& sim) {
  if (options.ranks < 1) {
    throw Error(ErrorCode::invalid,
                "ranks: " + std::to_string(options.ranks) + " is not at least 1");
  }
  const Mesh mesh = sim.mesh.value_or(Mesh::data_parallel(options.ranks));
  mesh.check(options.ranks);
  return std::make_unique<RecordingWorld>(mesh, sim);
}

}  // namespace zl::sim
