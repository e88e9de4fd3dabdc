#include "backends/cuda/held_product.h"

#include <utility>

#include "backends/cuda/blas.h"

namespace zl::cuda {

std::optional<GivenProduct> HeldProduct::release() { return std::exchange(held_, std::nullopt); }

std::optional<HeldProduct::Fused> HeldProduct::release_with(const Op& next, Blas& blas,
                                                            const ExecContext& context) {
  if (!held_) return std::nullopt;
  const std::optional<Product> both = fuse(held_->gemm, next, context.deterministic);
  if (!both || !blas.supports(*both, context.workspace_bytes)) return std::nullopt;
  return Fused{*both, *release()};
}

}  // namespace zl::cuda
