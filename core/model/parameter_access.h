// What the model needs from the parallel strategy: readable weights, a place for gradients, and to
// be told where the program is. ZeRO stages implement it (core/zero). Ownership: none. Threads:
// one rank's thread.
#pragma once

#include "core/base/tensor.h"

namespace zl {

enum class Pass : std::uint8_t { forward, backward };

// One entry of a unit by the program; the order of a micro-batch's visits is what a prefetcher may
// rely on.
struct Visit {
  int unit;
  Pass pass;
};

struct GradientTarget {
  TensorView view;          // the parameter's shape, gradient type
  bool accumulate = false;  // add to what is there, or overwrite
};

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;
  // Between enter and leave of a unit its weights are readable on the compute stream.
  virtual void enter(int unit, Pass pass) = 0;
  virtual void leave(int unit, Pass pass) = 0;
  virtual TensorView weight(int parameter) = 0;
  virtual GradientTarget gradient(int parameter) = 0;
  // All contributions of this micro-batch to the gradient are enqueued on the compute stream.
  virtual void gradient_ready(int parameter) = 0;
};

}  // namespace zl
