#include "backends/cpu/ops/gemm_packed.h"

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/tile.h"
#include "core/ops/matmul.h"

namespace zl::cpu {
namespace {

// Register tile: kRows x kVectors vectors of sums fill most of the register file, and their number
// hides the time of a multiply-add (of 16 registers 6 x 2 are 1.5 times as fast as 4 x 2, on a Zen
// 3).
constexpr int kRows = kVectorBytes == 64 ? 8 : 6;
constexpr int kVectors = kVectorBytes == 64 ? 3 : 2;
template <class A>
constexpr int kColumns = kVectors* kLanes<A>;

constexpr std::int64_t kDepth = 384;  // k per pass: a row tile of op(a) stays in the L1 cache
constexpr std::int64_t kWidth = 768;  // columns per pass: op(b)'s panel stays in the L2 cache
constexpr std::int64_t kMaxRows = 64 / kRows * kRows;  // rows a thread packs at a time
constexpr std::int64_t kChunk = 2048;  // rows per round: bounds the sums kept for 16-bit outputs

constexpr std::int64_t kPackDepth = 16;  // k per step of packing: few pages at a time

// The step that cuts `total` into the fewest parts of at most `limit`, evenly, in whole `granule`s.
std::int64_t even_step(std::int64_t total, std::int64_t limit, std::int64_t granule) {
  const std::int64_t parts = (total + limit - 1) / limit;
  return round_up((total + parts - 1) / std::max<std::int64_t>(parts, 1), granule);
}

// A matrix whose element (i, k) is at [i * ld + k], or [k * ld + i] when `along` (i contiguous).
template <class T>
struct Source {
  const T* data;
  std::int64_t ld;
  bool along;
};

// Packs `count` rows of the source (i from `first`), k in [k0, k0 + depth), into panels of `Width`
// rows: panel[k - origin][i], zero past `count`; panels lie Width * kDepth apart.
template <class A, int Width, class T>
void pack_contiguous(const Source<T>& source, std::int64_t first, std::int64_t count,
                     std::int64_t k0, std::int64_t depth, A* __restrict panels) {
  const std::int64_t whole = count / Width * Width;
  for (std::int64_t k = 0; k < depth; ++k) {
    const T* __restrict from = source.data + (k0 + k) * source.ld + first;
    A* __restrict to = panels + k * Width;
    for (std::int64_t i = 0; i < whole; i += Width) {
      for (int lane = 0; lane < Width; ++lane) to[i * kDepth + lane] = widen<A>(from[i + lane]);
    }
    if (whole == count) continue;
    for (std::int64_t i = whole; i < whole + Width; ++i) {
      to[whole * kDepth + i - whole] = i < count ? widen<A>(from[i]) : A{0};
    }
  }
}

// The same for a source with k contiguous, one panel.
template <class A, int Width, class T>
void pack_transposed(const Source<T>& source, std::int64_t first, std::int64_t count,
                     std::int64_t k0, std::int64_t depth, A* __restrict panel) {
  constexpr int kBlockRows = std::min(Width, kLanes<A>);
  if constexpr (std::is_same_v<A, T>) {
    if (count >= Width) {
      return transpose(source.data + first * source.ld + k0, source.ld, panel, Width, Width, depth);
    }
  }
  A rows[kBlockRows * kDepth];
  for (std::int64_t i0 = 0; i0 < Width; i0 += kBlockRows) {
    const std::int64_t present = std::clamp<std::int64_t>(count - i0, 0, kBlockRows);
    for (std::int64_t i = 0; i < present; ++i) {
      const T* __restrict from = source.data + (first + i0 + i) * source.ld + k0;
      for (std::int64_t k = 0; k < depth; ++k) rows[i * kDepth + k] = widen<A>(from[k]);
    }
    std::fill(rows + present * kDepth, rows + kBlockRows * kDepth, A{0});
    transpose(rows, kDepth, panel + i0, Width, kBlockRows, depth);
  }
}

// One product with its types: T inputs, C outputs, A sums.
template <class T, class C>
class Product {
 public:
  using A = Arithmetic<T>;

  explicit Product(const Gemm& op)
      : op_(op),
        a_{op.a.as<const T>(), op.a.columns(), op.trans_a},
        b_{op.b.as<const T>(), op.b.columns(), !op.trans_b},
        m_(op.m()),
        n_(op.n()),
        k_(op.k()),
        c_stride_(op.c.columns()) {}

  void run(const ExecContext& context) {
    static thread_local Scratch<A> panels, sums;
    const int threads = product_team(context, m_ * n_ * k_).threads;
    panels_ = panels.reserve(round_up(kWidth, kColumns<A>) * kDepth);
    if constexpr (!kDirect) sums_ = sums.reserve(std::min(m_, kChunk) * kWidth);
    // Small enough blocks that the threads finish together.
    block_ = std::clamp<std::int64_t>(round_up(m_ / (4 * threads), kRows), kRows, kMaxRows);
    if (threads == 1) {
      work();
      return;
    }
#pragma omp parallel num_threads(threads)
    work();
  }

 private:
  static constexpr bool kDirect = std::is_same_v<A, C>;  // sums are kept in c itself

  // Run by every thread of the team; each `omp for` ends in a barrier.
  void work() {
    const std::int64_t n_step = even_step(n_, kWidth, kColumns<A>);
    const std::int64_t k_step = even_step(k_, kDepth, kPackDepth);
    for (std::int64_t m0 = 0; m0 < m_; m0 += kChunk) {
      const std::int64_t m1 = std::min(m0 + kChunk, m_);
      for (std::int64_t n0 = 0; n0 < n_; n0 += n_step) {
        const std::int64_t width = std::min(n_step, n_ - n0);
        for (std::int64_t k0 = 0; k0 < k_; k0 += k_step) {
          const std::int64_t depth = std::min(k_step, k_ - k0);
          pack_right(n0, width, k0, depth);
#pragma omp for schedule(dynamic, 1)
          for (std::int64_t i = m0; i < m1; i += block_) {
            multiply_rows(i, std::min(block_, m1 - i), m0, n0, width, k0, depth);
          }
        }
      }
    }
  }

  void pack_right(std::int64_t n0, std::int64_t width, std::int64_t k0, std::int64_t depth) {
    if (b_.along) {
#pragma omp for schedule(static)
      for (std::int64_t k = 0; k < depth; k += kPackDepth) {
        pack_contiguous<A, kColumns<A>>(b_, n0, width, k0 + k, std::min(kPackDepth, depth - k),
                                        panels_ + k * kColumns<A>);
      }
    } else {
#pragma omp for schedule(static)
      for (std::int64_t j = 0; j < width; j += kColumns<A>) {
        pack_transposed<A, kColumns<A>>(b_, n0 + j, width - j, k0, depth, panels_ + j * kDepth);
      }
    }
  }

  void pack_left(std::int64_t first, std::int64_t rows, std::int64_t k0, std::int64_t depth,
                 A* packed) const {
    if (a_.along) {
      pack_contiguous<A, kRows>(a_, first, rows, k0, depth, packed);
    } else {
      for (std::int64_t i = 0; i < rows; i += kRows) {
        pack_transposed<A, kRows>(a_, first + i, rows - i, k0, depth, packed + i * kDepth);
      }
    }
  }

  A* target(std::int64_t row, std::int64_t m0, std::int64_t n0) const {
    if constexpr (kDirect) {
      return op_.c.as<A>() + row * c_stride_ + n0;
    } else {
      return sums_ + (row - m0) * kWidth;
    }
  }
  std::int64_t target_stride() const { return kDirect ? c_stride_ : kWidth; }

  void multiply_rows(std::int64_t first, std::int64_t rows, std::int64_t m0, std::int64_t n0,
                     std::int64_t width, std::int64_t k0, std::int64_t depth) {
    A packed[kMaxRows * kDepth];
    pack_left(first, rows, k0, depth, packed);
    const bool accumulate = k0 > 0 || (kDirect && op_.accumulate);
    for (std::int64_t i = 0; i < rows; i += kRows) {
      const std::int64_t present = std::min<std::int64_t>(kRows, rows - i);
      const A* tile = packed + i * kDepth;
      for (std::int64_t j = 0; j < width; j += kColumns<A>) {
        multiply(tile, panels_ + j * kDepth, depth, target(first + i, m0, n0) + j, present,
                 std::min<std::int64_t>(kColumns<A>, width - j), accumulate);
      }
    }
    if (k0 + depth == k_) {
      for (std::int64_t i = first; i < first + rows; ++i)
        finish_row(i, n0, width, target(i, m0, n0));
    }
  }

  // A whole register tile goes straight to its target; a part of one through a buffer.
  void multiply(const A* a, const A* b, std::int64_t depth, A* c, std::int64_t rows,
                std::int64_t columns, bool accumulate) const {
    const LeftOperand<A> left{a, 1, kRows};
    if (rows == kRows && columns == kColumns<A>) {
      multiply_tile<A, kRows, kVectors>(left, b, kColumns<A>, depth, c, target_stride(),
                                        accumulate);
      return;
    }
    A tile[kRows * kColumns<A>];
    multiply_tile<A, kRows, kVectors>(left, b, kColumns<A>, depth, tile, kColumns<A>, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      A* to = c + r * target_stride();
      const A* from = tile + r * kColumns<A>;
      for (std::int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
    }
  }

  void finish_row(std::int64_t row, std::int64_t n0, std::int64_t width, A* __restrict sums) const {
    if (!op_.bias.empty()) {
      const T* __restrict bias = op_.bias.as<const T>() + n0;
      for (std::int64_t j = 0; j < width; ++j) sums[j] += widen<A>(bias[j]);
    }
    if constexpr (!kDirect) {
      C* __restrict c = op_.c.as<C>() + row * c_stride_ + n0;
      if (op_.accumulate) {
        for (std::int64_t j = 0; j < width; ++j) sums[j] += widen<A>(c[j]);
      }
      for (std::int64_t j = 0; j < width; ++j) c[j] = narrow<C>(sums[j]);
    }
  }

  const Gemm& op_;
  Source<T> a_, b_;
  std::int64_t m_, n_, k_, c_stride_;
  std::int64_t block_ = kMaxRows;
  A* panels_ = nullptr;  // op(b)'s current panel, shared by the team
  A* sums_ = nullptr;    // unrounded sums of a chunk of c, when c cannot hold them
};

}  // namespace

void packed_gemm(const Gemm& op, const ExecContext& context) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    if (op.c.dtype == DType::f32) {
      Product<T, float>(op).run(context);
    } else {
      Product<T, T>(op).run(context);
    }
  };
  if (op.a.dtype == DType::bf16) {
    run(bfloat16{});
  } else {
    run(float16{});
  }
}

}  // namespace zl::cpu
