#include "core/ops/op.h"

#include <utility>

namespace zl {
namespace {

template <std::size_t... I>
constexpr std::array<const char*, sizeof...(I)> names(std::index_sequence<I...>) {
  return {std::variant_alternative_t<I, Op>::kName...};
}

}  // namespace

const char* op_name(std::size_t kind) {
  constexpr auto kNames = names(std::make_index_sequence<kOpKinds>{});
  return kind < kNames.size() ? kNames[kind] : "?";
}

}  // namespace zl
