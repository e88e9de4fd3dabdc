// Column sums: the gradient of a bias.
#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/matmul.h"

namespace zl::cpu {
namespace {

// dbias[begin, end) from all rows in order: independent of how columns are split over threads.
template <class T>
void sum_columns(const BiasBackward& op, std::int64_t begin, std::int64_t end) {
  using A = Arithmetic<T>;
  const std::int64_t rows = op.dout.rows(), columns = op.dout.columns();
  for (std::int64_t first = begin; first < end; first += kBlock) {
    const std::int64_t width = std::min(kBlock, end - first);
    A sums[kBlock] = {};
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* __restrict source = op.dout.as<const T>() + row * columns + first;
      for (std::int64_t c = 0; c < width; ++c) sums[c] += widen<A>(source[c]);
    }
    store(op.dbias, first, width, sums, op.accumulate);
  }
}

}  // namespace

void execute(const BiasBackward& op, const ExecContext& context) {
  // Nothing is simpler than to add a row to sums that stay in the nearest cache.
  const std::int64_t grain = std::max<std::int64_t>(64, 4 * rows_worth_a_thread(op.dout.rows()));
  with_float_type(op.dout.dtype, op.kName, [&](auto type) {
    parallel_for(context, op.dout.columns(), grain, [&](std::int64_t begin, std::int64_t end) {
      sum_columns<decltype(type)>(op, begin, end);
    });
  });
}

}  // namespace zl::cpu
