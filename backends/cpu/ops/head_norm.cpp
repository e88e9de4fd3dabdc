// RMSNorm of query and key heads, forward and backward.
#include "core/ops/head_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"

namespace zl::cpu {
namespace {

// The heads of one row: how many there are, and the weight of each.
struct Heads {
  std::int64_t queries, all, size;
  explicit Heads(const AttentionShape& shape)
      : queries(shape.heads), all(shape.heads + shape.kv_heads), size(shape.head_size) {}
};

template <class T, class A>
void normalise_heads(const HeadNormForward& op, std::int64_t row, A* __restrict values) {
  const Heads heads(op.shape);
  const A offset = static_cast<A>(op.weight_offset);
  for (std::int64_t head = 0; head < heads.all; ++head) {
    T* __restrict out = op.qkv.as<T>() + row * op.shape.qkv_width() + head * heads.size;
    T* __restrict x = op.x.as<T>() + (row * heads.all + head) * heads.size;
    const TensorView& weights = head < heads.queries ? op.q_weight : op.k_weight;
    const T* __restrict weight = weights.as<const T>();
    for (std::int64_t c = 0; c < heads.size; ++c) {
      x[c] = out[c];
      values[c] = widen<A>(out[c]);
    }
    const A square = lane_sum<A>(heads.size, [&](std::int64_t c) { return values[c] * values[c]; });
    const A rstd =
        A{1} / std::sqrt(square / static_cast<A>(heads.size) + static_cast<A>(op.epsilon));
    op.rstd.as<A>()[row * heads.all + head] = rstd;
    for (std::int64_t c = 0; c < heads.size; ++c) {
      out[c] = narrow<T>(values[c] * rstd * (offset + widen<A>(weight[c])));
    }
  }
}

// dx of the heads of one row; adds their shares to dweight: [query heads' D, key heads' D].
template <class T, class A>
void backward_row(const HeadNormBackward& op, std::int64_t row, A* __restrict xhat, A* __restrict g,
                  A* dweight) {
  const Heads heads(op.shape);
  const A offset = static_cast<A>(op.weight_offset);
  for (std::int64_t head = 0; head < heads.all; ++head) {
    T* __restrict d = op.dqkv.as<T>() + row * op.shape.qkv_width() + head * heads.size;
    const T* __restrict x = op.x.as<const T>() + (row * heads.all + head) * heads.size;
    const bool is_query = head < heads.queries;
    const T* __restrict weight = (is_query ? op.q_weight : op.k_weight).as<const T>();
    A* __restrict share = dweight + (is_query ? 0 : heads.size);
    const A rstd = op.rstd.as<const A>()[row * heads.all + head];
    for (std::int64_t c = 0; c < heads.size; ++c) {
      const A gradient = widen<A>(d[c]);
      xhat[c] = widen<A>(x[c]) * rstd;
      g[c] = gradient * (offset + widen<A>(weight[c]));
      share[c] += gradient * xhat[c];
    }
    const A along = lane_sum<A>(heads.size, [&](std::int64_t c) { return g[c] * xhat[c]; }) /
                    static_cast<A>(heads.size);
    for (std::int64_t c = 0; c < heads.size; ++c) {
      d[c] = narrow<T>(rstd * (g[c] - xhat[c] * along));
    }
  }
}

// Shares of blocks of rows, added up in their order: the blocks depend on the shape only.
template <class T>
void backward(const HeadNormBackward& op, const ExecContext& context) {
  using A = Arithmetic<T>;
  const std::int64_t rows = op.shape.rows(), size = op.shape.head_size;
  const std::int64_t block_rows = std::max<std::int64_t>(16, (rows + 63) / 64);
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  std::vector<A> shares(static_cast<std::size_t>(std::max<std::int64_t>(blocks, 1) * 2 * size),
                        A{0});
  const std::int64_t grain = rows_worth_a_thread(block_rows * op.shape.qkv_width(), 2);
  parallel_for(context, blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<A> scratch(static_cast<std::size_t>(2 * size));
    for (std::int64_t row = begin * block_rows; row < std::min(rows, end * block_rows); ++row) {
      backward_row<T>(op, row, scratch.data(), scratch.data() + size,
                      shares.data() + row / block_rows * 2 * size);
    }
  });
  for (std::int64_t block = 1; block < blocks; ++block) {
    for (std::int64_t c = 0; c < 2 * size; ++c) shares[c] += shares[block * 2 * size + c];
  }
  store(op.dq_weight, 0, size, shares.data(), op.accumulate);
  store(op.dk_weight, 0, size, shares.data() + size, op.accumulate);
}

}  // namespace

void execute(const HeadNormForward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    const std::int64_t grain = rows_worth_a_thread(op.shape.qkv_width(), 2);
    parallel_for(context, op.shape.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Arithmetic<T>> scratch(static_cast<std::size_t>(op.shape.head_size));
      for (std::int64_t row = begin; row < end; ++row) {
        normalise_heads<T>(op, row, scratch.data());
      }
    });
  });
}

void execute(const HeadNormBackward& op, const ExecContext& context) {
  with_float_type(op.dqkv.dtype, op.kName,
                  [&](auto type) { backward<decltype(type)>(op, context); });
}

}  // namespace zl::cpu
