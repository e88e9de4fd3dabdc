// Every field of a Strategy, whatever it is called.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/train/strategy.h"

namespace zl::test {

// Every field of each struct: a new one does not compile until it is listed here, and is then
// missed by StrategyJson.EveryFieldIsCovered until a strategy there sets it.
inline auto fields_of(const ZeroConfig& z) {
  const auto& [a, b, c, d, e, f, g, h, i, r, j, k, l, m, n] = z;
  return std::tie(a, b, c, d, e, f, g, h, i, r, j, k, l, m, n);
}
inline auto fields_of(const PrecisionConfig& p) {
  const auto& [a, b, c, d] = p;
  return std::tie(a, b, c, d);
}
inline auto fields_of(const RecomputeConfig& r) {
  const auto& [a, b, c, d, e, f, g] = r;
  return std::tie(a, b, c, d, e, f, g);
}
inline auto fields_of(const AioConfig& x) {
  const auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
inline auto fields_of(const OffloadConfig& o) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, p] = o;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, p);
}
inline auto fields_of(const OnebitConfig& o) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l] = o;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
}
inline auto fields_of(const OptimizerConfig& o) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l] = o;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
}
inline auto fields_of(const ScheduleConfig& s) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y, z] = s;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y, z);
}
inline auto fields_of(const LossScalerConfig& l) {
  const auto& [a, b, c, d, e, f] = l;
  return std::tie(a, b, c, d, e, f);
}
inline auto fields_of(const PipelineConfig& p) {
  const auto& [a, b, c, d, e] = p;
  return std::tie(a, b, c, d, e);
}
inline auto fields_of(const TensorConfig& t) {
  const auto& [a, b, c] = t;
  return std::tie(a, b, c);
}
inline auto fields_of(const SparseAttentionConfig& s) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = s;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
}
inline auto fields_of(const Strategy& s) {
  const auto& [a, b, c, d, p, e, f, t, g, h, i, j, k, l, m, n] = s;
  return std::tie(a, b, c, d, p, e, f, t, g, h, i, j, k, l, m, n);
}

template <class T>
concept HasFields = requires(const T& value) {
  fields_of(value);
};

// Calls visit(path, equal) for every leaf: "Strategy.1.0" is the first field of the second one.
template <class T, class Visitor>
void compare(const T& left, const T& right, const std::string& path, const Visitor& visit) {
  if constexpr (HasFields<T>) {
    const auto a = fields_of(left), b = fields_of(right);
    const auto each = [&]<std::size_t... i>(std::index_sequence<i...>) {
      (compare(std::get<i>(a), std::get<i>(b), path + "." + std::to_string(i), visit), ...);
    };
    each(std::make_index_sequence<std::tuple_size_v<decltype(a)>>());
  } else {
    visit(path, left == right);
  }
}

inline std::set<std::string> differences(const Strategy& left, const Strategy& right) {
  std::set<std::string> paths;
  compare(left, right, "Strategy", [&paths](const std::string& path, bool equal) {
    if (!equal) paths.insert(path);
  });
  return paths;
}

}  // namespace zl::test
