#include "simulator/world.h"

#include "core/base/error.h"
#include "simulator/communicator.h"

namespace zl::sim {
namespace {

class RecordingWorld final : public World {
 public:
  RecordingWorld(int ranks, const SimOptions& sim)
      : device_(sim.device, sim.answers), communicator_(ranks) {}

  int ranks() const override { return communicator_.size(); }
  int executed_ranks() const override { return 1; }
  bool is_recording() const override { return true; }
  void run(const std::function<void(RankHandle)>& program) override {
    program(RankHandle{device_, communicator_});
  }

 private:
  Device device_;
  Communicator communicator_;
};

}  // namespace

std::unique_ptr<World> make_world(const WorldOptions& options, const SimOptions& sim) {
  if (options.ranks < 1) {
    throw Error(ErrorCode::invalid,
                "ranks: " + std::to_string(options.ranks) + " is not at least 1");
  }
  return std::make_unique<RecordingWorld>(options.ranks, sim);
}

}  // namespace zl::sim
