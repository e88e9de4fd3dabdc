// The memory lent to a device for its ops' scratch, a part for each stream of the GPU.
// Ownership: the lender's. Threads: one rank's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/stream.h"

namespace zl::cuda {

struct Workspace {
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
};

class Workspaces {
 public:
  // memory: null takes it back.
  void lend(std::byte* memory, std::int64_t bytes);
  Workspace of(StreamId stream) const { return parts_[static_cast<std::size_t>(stream)]; }

 private:
  std::array<Workspace, kDeviceStreams> parts_{};
};

}  // namespace zl::cuda
