// Tensors of random numbers on a device, and how long work on a GPU's stream takes.
// Ownership: a Bench owns the tensors it makes, until clear(); a GpuBench also its device and the
// workspace it lends. Threads: one thread.
#pragma once

#include <functional>
#include <vector>

#include "backends/cuda/device.h"
#include "core/base/tensor.h"

namespace zl::gpu {

class Bench {
 public:
  virtual ~Bench() = default;

  // Throw Error{failed} where the device has no room.
  TensorView empty(DType dtype, const Shape& shape);
  TensorView zeros(DType dtype, const Shape& shape);
  TensorView normal(DType dtype, const Shape& shape, double std = 1);
  // i32, uniform in [0, below).
  TensorView tokens(std::int64_t count, std::int64_t below);
  void clear();

  void run(const Op& op) { device().run(StreamId::compute, op, nullptr); }
  // Of one op, which is validated.
  double seconds(const Op& op);
  // Of anything that enqueues on context().stream.
  virtual double seconds(const std::function<void()>& enqueue) = 0;
  virtual cuda::ExecContext context() const = 0;

 protected:
  virtual Device& device() = 0;

 private:
  struct Slab {
    std::byte* memory;
    std::int64_t bytes;
  };
  std::vector<Slab> slabs_;
};

class GpuBench final : public Bench {
 public:
  // GPU 0. fill: seconds that the launches of a repeat take. Throws Error{unavailable}.
  explicit GpuBench(double fill = 0.01);
  ~GpuBench() override;
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  using Bench::seconds;
  // Median over five repeats of the mean over as many launches as fill them, after a warm-up.
  double seconds(const std::function<void()>& enqueue) override;
  cuda::ExecContext context() const override { return device_.context(StreamId::compute); }

 private:
  Device& device() override { return device_; }
  double timed(const std::function<void()>& enqueue, int launches);

  cuda::Device device_{0, 0, {}, false};  // not deterministic: the fastest it has
  double fill_;
  std::byte* workspace_ = nullptr;
};

}  // namespace zl::gpu
