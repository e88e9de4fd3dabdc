// The tensors of flat, element-wise optimizer kernels. Most are f32: runs of four, so that what a
// warp writes at once has no gaps. Ownership: nothing. Threads: device code.
#pragma once

#include "backends/cuda/kernel/runs.h"
#include "core/base/tensor.h"

namespace zl::cuda {

inline constexpr int kFlatRun = 4;

// A flat f32 tensor, read and written in runs.
struct Flat {
  float* data;
  bool packed;

  explicit Flat(const TensorView& view) : data(view.as<float>()), packed(aligned_16(view.data)) {}
  __device__ void load(std::int64_t first, std::int64_t length, float (&values)[kFlatRun]) const {
    load_run(data + first, length, packed, values);
  }
  __device__ void store(std::int64_t first, std::int64_t length,
                        const float (&values)[kFlatRun]) const {
    store_run(data + first, length, packed, values);
  }
};

// The weights in the compute type; absent when data is null.
template <class C>
struct Copy {
  C* data;
  bool packed;

  explicit Copy(const TensorView& view)
      : data(view.empty() ? nullptr : view.as<C>()), packed(aligned_16(view.data)) {}
  __device__ void store(std::int64_t first, std::int64_t length,
                        const float (&values)[kFlatRun]) const {
    if (data != nullptr) store_run(data + first, length, packed, values);
  }
};

template <class G>
struct Gradient {
  const G* data;
  bool packed;

  explicit Gradient(const TensorView& view) : data(view.as<G>()), packed(aligned_16(view.data)) {}
  __device__ void load(std::int64_t first, std::int64_t length, float (&values)[kFlatRun]) const {
    load_run(data + first, length, packed, values);
  }
};

// What an update multiplies its gradients by: a number, or one that the device has found.
struct GradientScale {
  float value;
  const double* factor;  // null: absent

  template <class Update>
  explicit GradientScale(const Update& op)
      : value(op.grad_scale), factor(op.factor.template as<double>()) {}
  __device__ float get() const { return factor == nullptr ? value : static_cast<float>(*factor); }
};

// The type of an absent copy does not matter.
inline DType copy_type(const TensorView& copy) { return copy.empty() ? DType::f32 : copy.dtype; }

}  // namespace zl::cuda
