// LayerNorm and RMSNorm with the fused residual addition, forward and backward.
#include <cmath>
#include <vector>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/random_fill.h"
#include "core/ops/norm.h"

namespace zl::cpu {
namespace {

// row = what is to be normalised, rounded to T as the backward will read it.
template <class T, class A>
void load_sum(const NormForward& op, std::int64_t index, std::int64_t columns, A* __restrict row,
              A* __restrict added) {
  const T* x = op.x.as<const T>() + index;
  if (op.add.empty()) {
    for (std::int64_t c = 0; c < columns; ++c) row[c] = widen<A>(x[c]);
    return;
  }
  const T* __restrict add = op.add.as<const T>() + index;
  for (std::int64_t c = 0; c < columns; ++c) added[c] = widen<A>(add[c]);
  apply_dropout(op.dropout, static_cast<std::uint64_t>(index), columns, added);
  for (std::int64_t c = 0; c < columns; ++c) {
    row[c] = widen<A>(narrow<T>(widen<A>(x[c]) + added[c]));
  }
  store(op.sum, index, columns, row);
}

template <class T, class A>
void normalise_row(const NormForward& op, std::int64_t r, A* __restrict row, A* __restrict added) {
  const std::int64_t columns = op.x.columns();
  const A width = static_cast<A>(columns);
  load_sum<T>(op, r * columns, columns, row, added);
  A mean = 0;
  if (op.kind == NormKind::layer_norm) {
    mean = lane_sum<A>(columns, [&](std::int64_t c) { return row[c]; }) / width;
    op.mean.as<A>()[r] = mean;
  }
  const A square = lane_sum<A>(columns, [&](std::int64_t c) {
    const A centred = row[c] - mean;
    return centred * centred;
  });
  const A rstd = A{1} / std::sqrt(square / width + static_cast<A>(op.epsilon));
  op.rstd.as<A>()[r] = rstd;
  const T* __restrict weight = op.weight.as<const T>();
  const A offset = static_cast<A>(op.weight_offset);
  T* __restrict out = op.out.as<T>() + r * columns;
  if (op.bias.empty()) {
    for (std::int64_t c = 0; c < columns; ++c) {
      out[c] = narrow<T>((row[c] - mean) * rstd * (offset + widen<A>(weight[c])));
    }
    return;
  }
  const T* __restrict bias = op.bias.as<const T>();
  for (std::int64_t c = 0; c < columns; ++c) {
    out[c] = narrow<T>((row[c] - mean) * rstd * (offset + widen<A>(weight[c])) + widen<A>(bias[c]));
  }
}

// dx of one row; adds the row's share to dweight and dbias. With xhat = (x - mean) rstd and
// g = dout weight:  dx = rstd (g - avg(g) - xhat avg(g xhat)), avg(g) absent in RMSNorm.
template <class T, class A>
void backward_row(const NormBackward& op, std::int64_t r, A* __restrict xhat, A* __restrict g,
                  A* __restrict dweight, A* __restrict dbias) {
  const std::int64_t columns = op.x.columns(), index = r * columns;
  const bool layer_norm = op.kind == NormKind::layer_norm;
  const A mean = layer_norm ? op.mean.as<const A>()[r] : A{0};
  const A rstd = op.rstd.as<const A>()[r];
  const T* x = op.x.as<const T>() + index;
  const T* dout = op.dout.as<const T>() + index;
  const T* weight = op.weight.as<const T>();
  const A offset = static_cast<A>(op.weight_offset);
  for (std::int64_t c = 0; c < columns; ++c) {
    const A d = widen<A>(dout[c]);
    xhat[c] = (widen<A>(x[c]) - mean) * rstd;
    g[c] = d * (offset + widen<A>(weight[c]));
    dweight[c] += d * xhat[c];
    dbias[c] += d;
  }
  const A width = static_cast<A>(columns);
  const A along = lane_sum<A>(columns, [&](std::int64_t c) { return g[c] * xhat[c]; }) / width;
  const A average =
      layer_norm ? lane_sum<A>(columns, [&](std::int64_t c) { return g[c]; }) / width : A{0};
  for (std::int64_t c = 0; c < columns; ++c) g[c] = rstd * (g[c] - average - xhat[c] * along);
  if (!op.dresidual.empty()) {
    const T* dresidual = op.dresidual.as<const T>() + index;
    for (std::int64_t c = 0; c < columns; ++c) g[c] = widen<A>(dresidual[c]) + g[c];
  }
  store(op.dx, index, columns, g);
}

template <class T>
void backward(const NormBackward& op, const ExecContext& context) {
  using A = Arithmetic<T>;
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  // Partial sums of dweight and dbias per block of rows, then added in block order: blocks depend
  // on the shape only, so the result does not depend on the number of threads.
  const std::int64_t block_rows = std::max<std::int64_t>(16, (rows + 63) / 64);
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  std::vector<A> partial(blocks * 2 * columns, A{0});
  const std::int64_t grain = rows_worth_a_thread(block_rows * columns, 2);
  parallel_for(context, blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<A> scratch(2 * columns);
    for (std::int64_t block = begin; block < end; ++block) {
      A* dweight = partial.data() + block * 2 * columns;
      const std::int64_t last = std::min(rows, (block + 1) * block_rows);
      for (std::int64_t r = block * block_rows; r < last; ++r) {
        backward_row<T>(op, r, scratch.data(), scratch.data() + columns, dweight,
                        dweight + columns);
      }
    }
  });
  for (std::int64_t block = 1; block < blocks; ++block) {
    const A* __restrict source = partial.data() + block * 2 * columns;
    A* __restrict total = partial.data();
    for (std::int64_t c = 0; c < 2 * columns; ++c) total[c] += source[c];
  }
  store(op.dweight, 0, columns, partial.data(), op.accumulate);
  if (!op.dbias.empty()) store(op.dbias, 0, columns, partial.data() + columns, op.accumulate);
}

}  // namespace

void execute(const NormForward& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    using A = Arithmetic<T>;
    const std::int64_t columns = op.x.columns();
    const std::int64_t grain = rows_worth_a_thread(columns, 2);
    parallel_for(context, op.x.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<A> scratch(2 * columns);
      for (std::int64_t r = begin; r < end; ++r) {
        normalise_row<T>(op, r, scratch.data(), scratch.data() + columns);
      }
    });
  });
}

void execute(const NormBackward& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) { backward<decltype(type)>(op, context); });
}

}  // namespace zl::cpu
