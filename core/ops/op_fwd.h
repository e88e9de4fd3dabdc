// The list of the ops, for those who only pass them on: a device takes any, a trace names each by
// its place in the list. Ownership: none. Threads: types only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

namespace zl {

struct Gemm;
struct BiasBackward;
struct EmbeddingForward;
struct EmbeddingBackward;
struct NormForward;
struct NormBackward;
struct Rope;
struct AttentionForward;
struct AttentionBackward;
struct ActivationForward;
struct ActivationBackward;
struct CrossEntropy;
struct Sum;
struct Fill;
struct Axpy;
struct Dropout;
struct RandomNormal;
struct AbsMax;
struct SquaredSum;
struct AdamStep;
struct SgdStep;
struct LambUpdate;
struct LambApply;
struct SignCompress;
struct SignAverage;
struct SignUnpack;
struct MomentumStep;
struct FrozenAdamStep;
struct LocalAdamStep;
struct DenominatorScale;
struct SharedAdamStep;
struct OnebitLambUpdate;
struct OnebitLambTrust;
struct ScaledStep;
struct BlockQuantize;
struct BlockDequantize;
struct BlockSum;

// Appended to, never reordered: the place is the `kind` of trace events and of calibration files.
using Op = std::variant<Gemm, BiasBackward, EmbeddingForward, EmbeddingBackward, NormForward,
                        NormBackward, Rope, AttentionForward, AttentionBackward, ActivationForward,
                        ActivationBackward, CrossEntropy, Sum, Fill, Axpy, Dropout, RandomNormal,
                        AbsMax, SquaredSum, AdamStep, SgdStep, LambUpdate, LambApply, SignCompress,
                        SignAverage, SignUnpack, MomentumStep, FrozenAdamStep, LocalAdamStep,
                        DenominatorScale, SharedAdamStep, OnebitLambUpdate, OnebitLambTrust,
                        ScaledStep, BlockQuantize, BlockDequantize, BlockSum>;

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
