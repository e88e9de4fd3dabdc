// What the ranks of one process share to exchange: made anew for every World::run.
// Ownership: must outlive its ranks' communicators. Threads: any.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backends/cuda/device.h"
#include "core/device/communicator.h"

namespace zl::cuda {

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  // Called once by each rank, on its thread; may block until all ranks have called.
  virtual std::unique_ptr<Communicator> join(Device& device, int rank) = 0;
  // This rank joins no further collective: those of the others, under way or to come, end with an
  // Error (zl::RankLeft where this is the only cause). Callable at any time, several times.
  virtual void leave(int rank, const std::string& why) = 0;
  // After a rank's streams were synchronised, its last call: throws RankLeft when collectives on
  // them were ended from outside, which leaves their results undefined and the streams well, and
  // Error{failed} when other ranks keep it from ending.
  virtual void finish(int /*rank*/) {}
};

}  // namespace zl::cuda
