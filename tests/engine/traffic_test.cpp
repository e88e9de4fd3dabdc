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

}  // namespace
}  // namespace zl::test
