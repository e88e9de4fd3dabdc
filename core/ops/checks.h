// Helpers of the ops' validate() and cost().
#pragma once

#include <string>

#include "core/base/error.h"
#include "core/base/tensor.h"
#include "core/ops/cost.h"

namespace zl {

inline void require(bool ok, const char* op, const char* what) {
  if (!ok) throw Error(ErrorCode::failed, std::string(op) + ": " + what);
}

inline std::int64_t bytes_of(const TensorView& view) { return view.empty() ? 0 : view.bytes(); }

// The factor of an update's gradients where the device has found it.
inline void require_factor(const TensorView& factor, const char* op) {
  require(factor.empty() || (factor.count() == 1 && factor.dtype == DType::f64), op,
          "factor is one f64");
}

// Cost of an op that streams its tensors once: bytes from its visit(), given FLOPs.
template <class Op>
Cost streaming_cost(const Op& op, double flops, std::int64_t rows, std::int64_t columns) {
  Cost cost{flops, 0, 0, rows, columns, 1};
  op.visit([&](const TensorView& view, Access access) {
    if (view.empty()) return;
    if (access != Access::write) cost.bytes_read += view.bytes();
    if (access != Access::read) cost.bytes_written += view.bytes();
  });
  return cost;
}

}  // namespace zl
