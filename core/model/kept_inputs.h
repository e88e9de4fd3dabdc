// Where the inputs that recomputation keeps wait for the backward, when that is not on the device.
// slot: of the micro-batch among those on their way (MicroBatch::slot).
// Ownership: an implementation owns what it keeps. Threads: one rank's thread.
#pragma once

#include "core/rank/rank_context.h"

namespace zl {

class KeptInputs {
 public:
  virtual ~KeptInputs() = default;
  // The compute stream has been told all that makes and reads `kept`.
  virtual void put(int slot, int layer, Tensor kept) = 0;
  // Starts the way back.
  virtual void fetch(int slot, int layer) = 0;
  // What put() was given, readable by the compute stream.
  virtual Tensor take(int slot, int layer) = 0;
  // The forward is over: everything has left the device.
  virtual void finish() = 0;
};

}  // namespace zl
