// What connects devices: a latency per hop and a bandwidth.
// Ownership: a value. Threads: value type.
#pragma once

#include <array>
#include <string>

namespace zl::sim {

// NCCL's three wire protocols: flag per word, flag per 128 bytes, none (src/graph/tuning.cc).
inline constexpr std::size_t kProtocols = 3;

struct Link {
  std::string name;                              // "nvlink4", "infiniband-ndr", "pcie5"
  std::array<double, kProtocols> hop_seconds{};  // latency of one hop under each protocol
  double bandwidth = 0;                          // bytes/s per device and direction
  double efficiency = 1;                         // share of it that large messages reach

  // Bytes/s that an all-reduce of many devices of a node sends where the switch adds up (NVLS, as
  // bus bandwidth); 0: it is a ring, as the others.
  double all_reduce_rate = 0;

  double rate() const { return bandwidth * efficiency; }
  bool operator==(const Link&) const = default;
};

}  // namespace zl::sim
