// One GPU with tensors of random numbers on it, and how long work on its stream takes.
// Ownership: a Bench owns its device, the lent workspace and every tensor it makes, until clear().
// Threads: one thread.
#pragma once

#include <functional>
#include <vector>

#include "backends/cuda/device.h"
#include "core/device/tensor.h"

namespace zl::gpu {

class Bench {
 public:
  // GPU 0. Throws Error{unavailable}.
  Bench();
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Throw Error{failed} where the GPU has no room.
  TensorView empty(DType dtype, const Shape& shape);
  TensorView zeros(DType dtype, const Shape& shape);
  TensorView normal(DType dtype, const Shape& shape, double std = 1);
  // i32, uniform in [0, below).
  TensorView tokens(std::int64_t count, std::int64_t below);
  // Releases the tensors, not what is lent.
  void clear();

  void run(const Op& op) { device_.run(StreamId::compute, op, nullptr); }
  cuda::ExecContext context() const { return device_.context(StreamId::compute); }

  // Median over five repeats of the mean over as many launches as fill 10 ms, after a warm-up.
  double seconds(const std::function<void()>& enqueue);
  // The same of one op.
  double seconds(const Op& op);

 private:
  struct Slab {
    std::byte* memory;
    std::int64_t bytes;
  };
  double timed(const std::function<void()>& enqueue, int launches);

  cuda::Device device_{0, 0};
  Slab workspace_;
  std::vector<Slab> slabs_;
};

}  // namespace zl::gpu
