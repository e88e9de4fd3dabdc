// Rotary positions in the half-split layout.
#include <cmath>
#include <vector>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/attention.h"

namespace zl::cpu {
namespace {

template <class A>
struct Rotation {
  std::vector<A> cosine, sine;

  Rotation(const Rope& op, std::int64_t position) {
    const double multiplier = op.table->multiplier;
    for (const double frequency : op.table->frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      cosine.push_back(static_cast<A>(multiplier * std::cos(angle)));
      sine.push_back(
          static_cast<A>(multiplier * (op.inverse ? -std::sin(angle) : std::sin(angle))));
    }
  }
};

template <class T>
void rotate_row(const Rotation<Arithmetic<T>>& rotation, std::int64_t heads, std::int64_t head_size,
                T* row) {
  using A = Arithmetic<T>;
  const A* __restrict cosine = rotation.cosine.data();
  const A* __restrict sine = rotation.sine.data();
  const auto half = static_cast<std::int64_t>(rotation.cosine.size());
  for (std::int64_t head = 0; head < heads; ++head) {
    T* __restrict low = row + head * head_size;
    T* __restrict high = low + half;
    for (std::int64_t j = 0; j < half; ++j) {
      const A x = widen<A>(low[j]), y = widen<A>(high[j]);
      low[j] = narrow<T>(x * cosine[j] - y * sine[j]);
      high[j] = narrow<T>(y * cosine[j] + x * sine[j]);
    }
  }
}

}  // namespace

// One thread rotates a position in every sequence, so that its angles are computed once.
void execute(const Rope& op, const ExecContext& context) {
  const AttentionShape& shape = op.shape;
  const std::int64_t width = shape.batch * (shape.heads + shape.kv_heads) * shape.head_size;
  const std::int64_t grain = rows_worth_a_thread(width, 2);
  with_float_type(op.qkv.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    parallel_for(context, shape.sequence, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Rotation<Arithmetic<T>> rotation(op, shape.first_position + i);
        for (std::int64_t b = 0; b < shape.batch; ++b) {
          T* row = op.qkv.as<T>() + (b * shape.sequence + i) * shape.qkv_width();
          rotate_row<T>(rotation, shape.heads + shape.kv_heads, shape.head_size, row);
        }
      }
    });
  });
}

}  // namespace zl::cpu
