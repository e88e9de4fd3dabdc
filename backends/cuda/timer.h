// When work on a device's streams began and ended, in steady-clock time of the host.
// Ownership: owns its CUDA events; refers to the timings it has still to fill. Threads: one rank's
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "backends/cuda/kernel/stream.h"
#include "core/device/device.h"

struct CUevent_st;

namespace zl::cuda {

class Timer {
 public:
  ~Timer();
  void start(StreamId id, Stream stream, Timing* timing);
  void stop(StreamId id, Stream stream);
  // The work of the last start() could not be enqueued.
  void forget(StreamId id);
  // Fills the timings of all work that is done.
  void resolve(Stream any_stream);

 private:
  struct Pending {
    CUevent_st *start = nullptr, *stop = nullptr;
    Timing* timing = nullptr;
  };
  CUevent_st* take();
  void set_anchor(Stream stream);
  void fill(const Pending& pending) const;

  // Event times are float milliseconds since the anchor: it is moved before they get coarse.
  static constexpr std::int64_t kAnchorLife = 4'000'000'000;  // ns
  CUevent_st* anchor_ = nullptr;
  std::int64_t anchor_ns_ = 0;
  std::array<std::deque<Pending>, kDeviceStreams> pending_;
  std::vector<CUevent_st*> free_;
};

}  // namespace zl::cuda
