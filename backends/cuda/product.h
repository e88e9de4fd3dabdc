// A matrix product as cuBLASLt computes it: a Gemm, and what its epilogue does to the sums before
// they are stored; which op the epilogue of the product before it can take over.
// Ownership: views. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/op.h"

namespace zl::cuda {

enum class Epilogue : std::uint8_t {
  none,
  bias,           // + vector
  gelu,           // aux = the sums, result = gelu_tanh(them)
  gelu_bias,      // aux = the sums + vector, result = gelu_tanh(them)
  gelu_gradient,  // result = the sums * gelu_tanh'(aux)
  bias_gradient   // vector[m] = the rows of op(a), summed over k
};

struct Product {
  Gemm gemm;
  Epilogue epilogue = Epilogue::none;
  TensorView result;  // gemm.c unless the epilogue is gelu or gelu_bias
  TensorView vector, aux;

  // Of gemm.bias: cuBLASLt takes it in the type of c, not f64, 16-byte aligned.
  bool adds_bias() const { return epilogue == Epilogue::bias || epilogue == Epilogue::gelu_bias; }
};

// The Gemm alone, with its bias where the epilogue takes it.
Product product_of(const Gemm& gemm);

// `gemm` and the op that runs next on its stream as one product that writes what both write; absent
// when types, shapes, alignment or aliasing forbid it, or:
//   - the activation is not gelu_tanh, the only GELU that cuBLASLt has;
//   - gelu' does not overwrite gemm.c: its value would be missing;
//   - `deterministic`, and the op is not gelu'. A fused op starts from sums that were not rounded
//     to 16 bits, so bits depend on what is fused. gelu' always follows its product. A bias
//     gradient follows its own only where no gradient bucket is sent in between, which ZeRO stages
//     decide differently; gelu is also recomputed from the stored gemm.c.
std::optional<Product> fuse(const Gemm& gemm, const Op& next, bool deterministic);

// Whether fuse() could ever succeed: else the Gemm need not wait for the next op.
bool may_fuse(const Gemm& gemm);

}  // namespace zl::cuda
