// The matrix product that waits for the next op of its stream, because its epilogue may take that
// op's work over (product.h).
// Ownership: a value; views, which the device's caller keeps. Threads: one rank's thread.
#pragma once

#include <optional>

#include "backends/cuda/ops/ops.h"
#include "backends/cuda/product.h"
#include "core/device/device.h"

namespace zl::cuda {

class Blas;

// A Gemm as it was given to the device.
struct GivenProduct {
  Gemm gemm;
  Timing* timing = nullptr;
};

class HeldProduct {
 public:
  // Of a product and the op behind it.
  struct Fused {
    Product both;
    GivenProduct first;
  };

  bool empty() const { return !held_; }
  void hold(const GivenProduct& product) { held_ = product; }
  // Lets it go, to be enqueued as it is; absent: there is none.
  std::optional<GivenProduct> release();
  // Lets it go together with `next`, the op behind it; absent, and still held: its epilogue cannot
  // take that op over.
  std::optional<Fused> release_with(const Op& next, Blas& blas, const ExecContext& context);

 private:
  std::optional<GivenProduct> held_;
};

}  // namespace zl::cuda
