// An op of any kind, for those who only pass it on: a device takes any, a trace names each by its
// place in the list. Ownership: none. Threads: types only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "core/ops/op_list.h"

namespace zl {

#define ZL_DECLARE(T) struct T;
ZL_OPS(ZL_DECLARE)
#undef ZL_DECLARE

template <class None, class... Ops>
using VariantOf = std::variant<Ops...>;
#define ZL_NEXT(T) , T
using Op = VariantOf<void ZL_OPS(ZL_NEXT)>;
#undef ZL_NEXT

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
