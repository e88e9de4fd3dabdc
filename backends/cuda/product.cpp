#include "backends/cuda/product.h"
#include "core/ops/activation.h"
#include "core/ops/matmul.h"
#include "core/ops/op.h"

namespace zl::cuda {
namespace {

bool aligned(const TensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
}

bool overlap(const TensorView& a, const TensorView& b) {
  return !a.empty() && !b.empty() && a.data < b.data + b.bytes() && b.data < a.data + a.bytes();
}

bool same(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.count() == b.count();
}

// Whether the epilogue may write `target` while other blocks still read the factors.
bool is_apart(const TensorView& target, const Gemm& gemm) {
  return !overlap(target, gemm.a) && !overlap(target, gemm.b) && !overlap(target, gemm.bias);
}

// What cuBLASLt asks of the matrix that goes with gelu: rows of a multiple of 8 elements, aligned.
// In f32 our own gelu is closer to the reference.
bool takes_gelu(const Gemm& gemm, const TensorView& aux) {
  return is_half(gemm.c.dtype) && aux.dtype == gemm.c.dtype && aux.count() == gemm.c.count() &&
         gemm.n() % 8 == 0 && !gemm.accumulate && aligned(aux) && aligned(gemm.c);
}

std::optional<Product> with_gelu(const Gemm& gemm, const ActivationForward& next) {
  if (next.kind != ActivationKind::gelu_tanh || !same(next.x, gemm.c)) return std::nullopt;
  Product product = product_of(gemm);
  if (!gemm.bias.empty() && !product.adds_bias()) return std::nullopt;
  if (!takes_gelu(gemm, next.y) || overlap(next.y, gemm.c) || !is_apart(next.y, gemm)) {
    return std::nullopt;
  }
  product.epilogue = product.adds_bias() ? Epilogue::gelu_bias : Epilogue::gelu;
  product.result = {next.y.data, next.y.dtype, gemm.c.shape};
  product.aux = gemm.c;
  return product;
}

std::optional<Product> with_gelu_gradient(const Gemm& gemm, const ActivationBackward& next) {
  const bool in_place = same(next.dy, gemm.c) && same(next.dx, gemm.c);
  if (next.kind != ActivationKind::gelu_tanh || !in_place || !gemm.bias.empty()) {
    return std::nullopt;
  }
  if (!takes_gelu(gemm, next.x) || overlap(next.x, gemm.c)) return std::nullopt;
  Product product = product_of(gemm);
  product.epilogue = Epilogue::gelu_gradient;
  product.aux = next.x;
  return product;
}

std::optional<Product> with_bias_gradient(const Gemm& gemm, const BiasBackward& next) {
  const bool its_rows = gemm.trans_a && same(next.dout, gemm.a) && next.dbias.count() == gemm.m();
  if (!its_rows || next.accumulate || !gemm.bias.empty()) return std::nullopt;
  const bool fits = next.dbias.dtype == gemm.c.dtype && gemm.c.dtype != DType::f64;
  if (!fits || !aligned(next.dbias) || overlap(next.dbias, gemm.c) || !is_apart(next.dbias, gemm)) {
    return std::nullopt;
  }
  Product product = product_of(gemm);
  product.epilogue = Epilogue::bias_gradient;
  product.vector = next.dbias;
  return product;
}

}  // namespace

Product product_of(const Gemm& gemm) {
  Product product{gemm, Epilogue::none, gemm.c, {}, {}};
  const bool takes_bias = !gemm.bias.empty() && gemm.bias.dtype == gemm.c.dtype &&
                          gemm.c.dtype != DType::f64 && aligned(gemm.bias);
  if (takes_bias) {
    product.epilogue = Epilogue::bias;
    product.vector = gemm.bias;
  }
  return product;
}

bool may_fuse(const Gemm& gemm) {
  return gemm.c.dtype != DType::f64 && gemm.c.count() > 0 && gemm.k() > 0 && !gemm.padded;
}

std::optional<Product> fuse(const Gemm& gemm, const Op& next, bool deterministic) {
  if (!may_fuse(gemm)) return std::nullopt;
  if (const auto* backward = std::get_if<ActivationBackward>(&next)) {
    return with_gelu_gradient(gemm, *backward);
  }
  if (deterministic) return std::nullopt;
  if (const auto* forward = std::get_if<ActivationForward>(&next)) return with_gelu(gemm, *forward);
  if (const auto* bias = std::get_if<BiasBackward>(&next)) return with_bias_gradient(gemm, *bias);
  return std::nullopt;
}

}  // namespace zl::cuda
