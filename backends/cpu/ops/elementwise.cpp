// Fill, scaled copy, dropout and random initialisation, block by block.
#include <cmath>
#include <cstring>
#include <numbers>

#include "backends/cpu/ops/blocks.h"
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/random_fill.h"
#include "core/ops/elementwise.h"

namespace zl::cpu {
namespace {

// z[i] = z(first + i), i < count <= kBlock: Box & Muller (1958), pair j from words 2j and 2j + 1.
void standard_normals(const RngKey& key, std::uint64_t first, std::int64_t count, double* z) {
  const std::uint64_t even = first & ~std::uint64_t{1};
  std::uint32_t words[kBlock];
  double pairs[kBlock + 2];
  const std::int64_t needed = static_cast<std::int64_t>(first - even) + count;
  for (std::int64_t start = 0; start < needed; start += kBlock) {
    const std::int64_t length = std::min(kBlock, (needed - start + 1) / 2 * 2);
    random_words(key, even + static_cast<std::uint64_t>(start), length, words);
    for (std::int64_t i = 0; i < length; i += 2) {
      // u1 in (0, 1], so that its logarithm is finite.
      const double u1 = (static_cast<double>(words[i]) + 1.0) * 0x1p-32;
      const double angle = 2.0 * std::numbers::pi * 0x1p-32 * static_cast<double>(words[i + 1]);
      const double radius = std::sqrt(-2.0 * std::log(u1));
      pairs[start + i] = radius * std::cos(angle);
      pairs[start + i + 1] = radius * std::sin(angle);
    }
  }
  std::copy_n(pairs + (first - even), count, z);
}

}  // namespace

void execute(const Fill& op, const ExecContext& context) {
  const auto fill = [&](auto value) {
    parallel_for(context, op.x.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::fill(op.x.as<decltype(value)>() + begin, op.x.as<decltype(value)>() + end, value);
    });
  };
  if (op.x.dtype == DType::i32) {
    fill(static_cast<std::int32_t>(op.value));
  } else {
    with_float_type(op.x.dtype, op.kName,
                    [&](auto type) { fill(narrow<decltype(type)>(op.value)); });
  }
}

void execute(const Axpy& op, const ExecContext& context) {
  with_arithmetic(
      op.kName,
      [&](auto type) {
        using A = decltype(type);
        const A alpha =
            static_cast<A>(op.factor.empty() ? op.alpha : *op.factor.as<const double>());
        for_blocks(context, op.x.count(), [&](std::int64_t first, std::int64_t length) {
          A buffer[kBlock], scaled[kBlock];
          const A* x = load<A>(op.x, first, length, buffer);
          for (std::int64_t i = 0; i < length; ++i) scaled[i] = alpha * x[i];
          store(op.y, first, length, scaled, op.accumulate);
        });
      },
      op.x, op.y);
}

void execute(const Dropout& op, const ExecContext& context) {
  with_arithmetic(
      op.kName,
      [&](auto type) {
        using A = decltype(type);
        for_blocks(context, op.x.count(), [&](std::int64_t first, std::int64_t length) {
          A buffer[kBlock];
          const A* x = load<A>(op.x, first, length, buffer);
          if (x != buffer) std::copy_n(x, length, buffer);
          apply_dropout(op.spec, static_cast<std::uint64_t>(first), length, buffer);
          store(op.y, first, length, buffer);
        });
      },
      op.x, op.y);
}

void execute(const RandomNormal& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [](auto) {});
  for_blocks(context, op.x.count(), [&](std::int64_t first, std::int64_t length) {
    double z[kBlock];
    for (std::int64_t done = 0; done < length;) {  // each row's part is a run of the matrix
      const std::int64_t i = first + done, rest = length - done;
      const std::int64_t run =
          op.columns == 0 ? rest : std::min(rest, op.columns - (op.first + i) % op.columns);
      standard_normals(op.key, op.base + static_cast<std::uint64_t>(op.index(i)), run, z + done);
      done += run;
    }
    for (std::int64_t i = 0; i < length; ++i) z[i] *= op.std;
    store(op.x, first, length, z);
  });
}

void execute(const CopyColumns& op, const ExecContext& context) {
  const auto element = static_cast<std::int64_t>(size_of(op.x.matrix.dtype));
  const std::int64_t row = op.x.width * element;
  const std::int64_t from = op.x.stride() * element, to = op.y.stride() * element;
  constexpr std::int64_t kShare = 1 << 16;  // bytes of a thread
  const std::int64_t rows = kShare / row + 1;
  parallel_for(context, op.x.matrix.rows(), rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      std::memcpy(op.y.data() + i * to, op.x.data() + i * from, static_cast<std::size_t>(row));
    }
  });
}

}  // namespace zl::cpu
