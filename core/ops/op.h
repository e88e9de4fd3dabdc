// The ops of the training core as values: one plain struct per op in one variant.
// A device executes or records them. Adding an op: the struct here or in its family header, one
// overload `execute(const MyOp&)` per backend, one line in the conformance table.
//
// Every op struct has
//   static constexpr const char* kName
//   void validate() const            throws Error{failed} naming the op and the wrong shape or type
//   Cost cost() const                FLOPs, bytes, shape
//   template <F> void visit(F&& f)   f(const TensorView&, Access) for each tensor it touches
// An empty TensorView means "absent" where a field's comment allows it.
#pragma once

#include <array>
#include <variant>

#include "core/ops/activation.h"
#include "core/ops/attention.h"
#include "core/ops/compress.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/onebit_lamb.h"
#include "core/ops/optimizer.h"
#include "core/ops/quantize.h"

namespace zl {

using Op =
    std::variant<Gemm, BiasBackward, EmbeddingForward, EmbeddingBackward, NormForward, NormBackward,
                 Rope, AttentionForward, AttentionBackward, ActivationForward, ActivationBackward,
                 CrossEntropy, Sum, Fill, Axpy, Dropout, RandomNormal, AbsMax, SquaredSum, AdamStep,
                 SgdStep, LambUpdate, LambApply, SignCompress, SignAverage, SignUnpack,
                 MomentumStep, FrozenAdamStep, LocalAdamStep, DenominatorScale, SharedAdamStep,
                 OnebitLambUpdate, OnebitLambTrust, ScaledStep, BlockQuantize, BlockDequantize, BlockSum>;

template <class T, class Variant>
struct IndexOf;
template <class T, class... Rest>
struct IndexOf<T, std::variant<T, Rest...>> {
  static constexpr std::size_t value = 0;
};
template <class T, class First, class... Rest>
struct IndexOf<T, std::variant<First, Rest...>> {
  static constexpr std::size_t value = 1 + IndexOf<T, std::variant<Rest...>>::value;
};

// Position of op type T in the variant: the `kind` of its trace events.
template <class T>
inline constexpr std::uint8_t kOpKind = static_cast<std::uint8_t>(IndexOf<T, Op>::value);
inline constexpr std::size_t kOpKinds = std::variant_size_v<Op>;

const char* op_name(std::size_t kind);

}  // namespace zl
