// The recording communicator: rank 0 of any number of ranks; nothing travels.
// Ownership: a value. Threads: used by one rank's thread.
#pragma once

#include <memory>
#include <span>

#include "core/device/communicator.h"

namespace zl::sim {

class Communicator final : public zl::Communicator {
 public:
  explicit Communicator(int ranks) : ranks_(ranks) {}

  int rank() const override { return 0; }
  int size() const override { return ranks_; }
  std::string link() const override { return "sim"; }
  void run(StreamId, const Collective&, Timing*) override {}
  void exchange(StreamId, std::span<const Message>, Timing*) override {}
  std::unique_ptr<zl::Communicator> split(int, int) override {
    return std::make_unique<Communicator>(1);
  }

 private:
  int ranks_;
};

}  // namespace zl::sim
