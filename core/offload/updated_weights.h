// The weights that an update writes, as the host's step sees them: where each lives, and how a new
// value gets there. Ownership: an implementation owns the weights. Threads: one rank's thread.
#pragma once

#include "core/base/tensor.h"
#include "core/offload/offload_config.h"

namespace zl {

class UpdatedWeights {
 public:
  virtual ~UpdatedWeights() = default;
  // What this rank updates: [padded] when the optimizer is replicated (stage 0), [chunk] otherwise.
  virtual TensorView owned(int parameter) = 0;
  // Where owned() lives. cpu: in host memory, where the copy stream fetches it. nvme: in a file,
  // and there is no owned(); a new value, ready on the host stream, is written by write_back().
  virtual Tier tier(int /*parameter*/) const { return Tier::device; }
  virtual void write_back(int /*parameter*/, const TensorView& /*value*/) {}
};

}  // namespace zl
