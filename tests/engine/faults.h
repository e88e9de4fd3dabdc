// Ranks that throw at a chosen place of the program, and what the others make of it.
// Ownership: values, and what forwards refers to the real. Threads: one test.
#pragma once

#include <chrono>
#include <optional>

#include "tests/engine/forwarding.h"
#include "tests/engine/mesh_runs.h"

namespace zl::test {

// Where a rank throws, once it has been there before: in a phase, in a collective of an axis, at a
// message.
struct Place {
  std::string name;
  std::optional<Phase> phase = {};
  std::optional<Axis> axis = {};
  bool sends = false;

  bool is_message() const { return !phase && !axis; }
};

class Fault {
 public:
  Fault(int rank, const Place& place) : rank_(rank), place_(place) {}

  int rank() const { return rank_; }
  std::string text() const {
    return "thrown at " + place_.name + " of rank " + std::to_string(rank_);
  }
  void enters(Phase phase, int unit) {
    const bool loads = unit < 0 && (phase == Phase::forward || phase == Phase::backward);
    if (place_.phase == phase && !loads) count();
  }
  void collects(Axis axis) {
    if (place_.axis == axis) count();
  }
  void exchanges(std::span<const Message> messages) {
    if (place_.is_message() && messages.front().sends == place_.sends) count();
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

// The world's, and the groups that are split from it.
class FaultyCommunicator final : public ForwardingCommunicator {
 public:
  FaultyCommunicator(Communicator& real, Fault* fault, std::unique_ptr<Communicator> group = {})
      : ForwardingCommunicator(real), fault_(fault), group_(std::move(group)) {}
  void run(StreamId stream, const Collective& collective, Timing* timing) override {
    if (fault_ != nullptr) fault_->collects(collective.axis);
    ForwardingCommunicator::run(stream, collective, timing);
  }
  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override {
    if (fault_ != nullptr) fault_->exchanges(messages);
    ForwardingCommunicator::exchange(stream, messages, timing);
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    auto group = ForwardingCommunicator::split(color, key);
    Communicator& real = *group;
    return std::make_unique<FaultyCommunicator>(real, fault_, std::move(group));
  }

 private:
  Fault* fault_;
  std::unique_ptr<Communicator> group_;  // null: the world's
};

// What the caller of a run hears in which one rank throws.
inline std::string fault_of(int ranks, const ModelConfig& model, const Strategy& s,
                            const Place& place, int rank) {
  const TokenSource data = learnable_tokens(model.vocab);
  Fault fault(rank, place);
  ProgramOptions options = steps(3);
  options.sequence_length = model.max_sequence;
  try {
    cpu::make_world({.ranks = ranks})->run([&](RankHandle handle) {
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

// Whatever rank it is, and wherever: it is named, and no other waits for it. Who waited would take
// the minute of the time-out; a run with a fault takes a fraction of a second, on a busy machine
// some.
inline void expect_ends(int ranks, const ModelConfig& model, const Strategy& s,
                        const std::vector<Place>& places, const std::string& what) {
  using Clock = std::chrono::steady_clock;
  for (const Place& place : places) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto start = Clock::now();
      const std::string heard = fault_of(ranks, model, s, place, rank);
      EXPECT_EQ(heard, Fault(rank, place).text()) << what;
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(20)) << what << ": " << heard;
    }
  }
}

}  // namespace zl::test
