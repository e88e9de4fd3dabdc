// Wire bytes are a formula that both twins share; here they are held against the bytes that thread
// ranks really read from and write to each other.
#include "tests/engine/traffic.h"

#include "backends/cpu/thread_communicator.h"

namespace zl::test {
namespace {

TEST(Traffic, ThreadRanksMoveTheBytesOfTheBooks) {
  for (const int ranks : {2, 3, 4}) {
    for (const Strategy& s : strategies_that_send()) {
      const ModelConfig model = tiny_llama();
      const TokenSource data = learnable_tokens(model.vocab);
      ProgramOptions options = steps(4);
      options.sequence_length = model.max_sequence;
      options.keep_trace = true;
      TrafficSum moved;
      RankOutcome of_rank_0;
      std::mutex mutex;
      cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
        RankOutcome outcome = run_rank(handle, model, s, data, options);
        const cpu::Traffic& mine =
            dynamic_cast<const cpu::ThreadCommunicator&>(handle.communicator).moved();
        const std::lock_guard lock(mutex);
        moved.data += mine.bytes(Purpose::data);
        moved.control += mine.bytes(Purpose::control);
        if (handle.communicator.rank() == 0) of_rank_0 = std::move(outcome);
      });
      expect_traffic(moved, ranks, of_rank_0, s.name);
    }
  }
}

TrafficSum moved_by(const RankHandle& handle) {
  const cpu::Traffic& all =
      dynamic_cast<const cpu::ThreadCommunicator&>(handle.communicator).moved();
  return {all.bytes(Purpose::data), all.bytes(Purpose::control)};
}

void add(const TrafficSum& more, TrafficSum& sum) {
  sum.data += more.data;
  sum.control += more.control;
}

TEST(Traffic, ThreadRanksOfMeshesMoveTheBytesOfTheBooks) {
  ModelConfig model = tiny_llama();
  model.layers = 4;
  const TokenSource data = learnable_tokens(model.vocab);
  ProgramOptions options = steps(3);
  options.sequence_length = model.max_sequence;
  options.keep_trace = true;
  for (const int ranks : {4, 8}) {
    for (const Strategy& s : meshes_that_send()) {
      const Mesh mesh = mesh_of(s, ranks);
      TrafficSum moved;
      OwnTraffic all;
      std::mutex mutex;
      cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
        const RankOutcome outcome = run_rank(handle, model, s, data, options);
        const OwnTraffic own = own_traffic(outcome, mesh, handle.communicator.rank());
        const std::lock_guard lock(mutex);
        add(moved_by(handle), moved);
        add(own.booked, all.booked);
        add(own.needed, all.needed);
      });
      expect_traffic(moved, all, s.name + " of " + std::to_string(ranks) + " ranks");
    }
  }
}

}  // namespace
}  // namespace zl::test
