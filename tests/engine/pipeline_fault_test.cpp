// A rank of any stage that throws, in any part of the step, ends all: the run ends within two
// seconds and says what was thrown, and no other rank is left waiting.
#include <chrono>
#include <optional>

#include "tests/engine/forwarding.h"
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDeepest = 3;

// Where a rank throws, once it has been there before.
struct Place {
  std::string name;
  std::optional<Phase> phase;  // none: at a message
  bool sends = false;
};

class Fault {
 public:
  Fault(int rank, const Place& place) : rank_(rank), place_(place) {}

  int rank() const { return rank_; }
  std::string text() const {
    return "thrown at " + place_.name + " of rank " + std::to_string(rank_);
  }
  void enters(Phase phase, int unit) {
    if (place_.phase == phase && (unit >= 0 || phase == Phase::optimizer)) count();
  }
  void exchanges(std::span<const Message> messages) {
    if (!place_.phase && messages.front().sends == place_.sends) count();
  }

 private:
  void count() {
    if (++times_ == 2) throw Error(ErrorCode::failed, text());
  }

  int rank_;
  Place place_;
  int times_ = 0;
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(Device& real, Fault* fault) : ForwardingDevice(real), fault_(fault) {}
  void enter(Phase phase, int unit) override {
    if (fault_ != nullptr) fault_->enters(phase, unit);
    ForwardingDevice::enter(phase, unit);
  }

 private:
  Fault* fault_;  // null: of another rank
};

class FaultyCommunicator final : public ForwardingCommunicator {
 public:
  FaultyCommunicator(Communicator& real, Fault* fault)
      : ForwardingCommunicator(real), fault_(fault) {}
  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override {
    if (fault_ != nullptr) fault_->exchanges(messages);
    ForwardingCommunicator::exchange(stream, messages, timing);
  }

 private:
  Fault* fault_;
};

// What the caller of a run hears in which one rank throws.
std::string failure_of(const Strategy& s, const Place& place, int rank) {
  const ModelConfig model = four_layers(tiny_gpt2());
  const TokenSource data = learnable_tokens(model.vocab);
  Fault fault(rank, place);
  ProgramOptions options = steps(3);
  options.sequence_length = model.max_sequence;
  try {
    cpu::make_world({.ranks = static_cast<int>(s.pipeline.ranks)})->run([&](RankHandle handle) {
      Fault* mine = handle.communicator.rank() == fault.rank() ? &fault : nullptr;
      FaultyDevice device(handle.device, mine);
      FaultyCommunicator world(handle.communicator, mine);
      run_rank({device, world}, model, s, data, options);
    });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void expect_ends(const Strategy& s) {
  const std::vector<Place> places{{"a forward", Phase::forward},
                                  {"a backward", Phase::backward},
                                  {"the update", Phase::optimizer},
                                  {"a send", {}, true},
                                  {"a receive", {}, false}};
  for (const Place& place : places) {
    for (int rank = 0; rank < static_cast<int>(s.pipeline.ranks); ++rank) {
      const auto start = Clock::now();
      const std::string heard = failure_of(s, place, rank);
      EXPECT_EQ(heard, Fault(rank, place).text()) << name_of(s.pipeline.schedule);
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(2)) << heard;
    }
  }
}

TEST(PipelineFault, OfAnyStageAndPhaseEndsAllByName) {
  using enum PipelineKind;
  for (const int stage : {0, 3}) {
    Strategy plain = accumulated(stage, DType::f32, 6);
    plain.zero.overlap_comm = stage == 3;
    expect_ends(piped(plain, one_f_one_b, kDeepest));
    expect_ends(piped(plain, zb_h1, kDeepest));
    expect_ends(piped(plain, interleaved, 2, 2));
    expect_ends(piped(plain, zb_v, 2, 2));
  }
}

}  // namespace
}  // namespace zl::test
