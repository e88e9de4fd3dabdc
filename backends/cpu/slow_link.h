// A link that is slower than the machine's: the real twin of a simulated bandwidth.
// Ownership: a value. Threads: any; blocks its caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace zl::cpu {

// bandwidth: bytes a second, 0: as fast as it goes. `work` moves the bytes; returns when the link
// is free again.
template <class Work>
void carry(std::int64_t bytes, double bandwidth, const Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  work();
  if (bandwidth <= 0) return;
  const std::chrono::duration<double> transfer(static_cast<double>(bytes) / bandwidth);
  std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(transfer));
}

}  // namespace zl::cpu
