// Attention's masks and views against each other, on every harness: what a cache, separate matrices
// or a mask that hides nothing must not change in any bit; and what a mask costs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/ops/op.h"
#include "tests/conformance/random_blocks.h"
#include "tests/conformance/workspace.h"

namespace zl::test {
namespace {

bool same(const TensorView& a, const TensorView& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data, b.data, static_cast<std::size_t>(a.bytes())) == 0;
}

// columns [first, first + width) of rows of `from`, as a matrix of its own.
TensorView cut_out(Workspace& w, const ColumnsView& from) {
  const TensorView to = w.zeros(from.matrix.dtype, {from.matrix.rows(), from.width});
  for (std::int64_t i = 0; i < to.count(); ++i) {
    const std::int64_t row = i / from.width, column = from.first + i % from.width;
    set(to, i, get(from.matrix, row * from.stride() + column));
  }
  return to;
}

QkvViews separated(Workspace& w, const QkvViews& from) {
  QkvViews to = from;
  for (ColumnsView* view : {&to.q, &to.k, &to.v}) *view = {cut_out(w, *view), 0, view->width};
  return to;
}

struct Results {
  TensorView out, lse;
  QkvViews dqkv;
};

class Attention : public testing::TestWithParam<DType> {
 protected:
  Workspace w{test_seed()};

  AttentionForward make(const AttentionShape& shape, const AttentionMask& mask) {
    AttentionForward op;
    op.shape = shape;
    op.mask = mask;
    op.qkv = packed_qkv(w.normal(GetParam(), {shape.rows(), shape.qkv_width()}), shape);
    op.out = w.zeros(GetParam(), {shape.rows(), shape.out_width()});
    op.lse = w.zeros(wide(), {shape.batch, shape.heads, shape.sequence});
    op.scale = 1.0 / std::sqrt(static_cast<double>(shape.head_size));
    return op;
  }
  Results run(Harness& harness, AttentionForward op, const TensorView& dout) {
    op.out = w.zeros(op.out.dtype, op.out.shape);
    op.lse = w.zeros(op.lse.dtype, op.lse.shape);
    run_on(harness, op);
    const AttentionShape& s = op.shape;
    QkvViews dqkv = packed_qkv(w.zeros(GetParam(), {s.rows(), s.qkv_width()}), s);
    if (!op.qkv.is_packed(s)) dqkv = separated(w, dqkv);
    run_on(harness, AttentionBackward{dout, op.out, op.qkv, op.lse, dqkv,
                                      w.zeros(op.lse.dtype, op.lse.shape), s, op.scale, op.dropout,
                                      op.mask});
    return {op.out, op.lse, dqkv};
  }
  void expect_same(const Results& a, const Results& b) {
    EXPECT_TRUE(same(a.out, b.out)) << "out";
    EXPECT_TRUE(same(a.lse, b.lse)) << "lse";
    EXPECT_TRUE(same(cut_out(w, a.dqkv.q), cut_out(w, b.dqkv.q))) << "dq";
    EXPECT_TRUE(same(cut_out(w, a.dqkv.k), cut_out(w, b.dqkv.k))) << "dk";
    EXPECT_TRUE(same(cut_out(w, a.dqkv.v), cut_out(w, b.dqkv.v))) << "dv";
  }
  DType wide() const { return GetParam() == DType::f64 ? DType::f64 : DType::f32; }
};

constexpr AttentionShape kShape{2, 130, 4, 2, 64};

TEST_P(Attention, SeparateMatricesGiveTheBitsOfAPackedOne) {
  const AttentionForward packed = make(kShape, AttentionMask::causal());
  AttentionForward apart = packed;
  apart.qkv = separated(w, packed.qkv);
  const TensorView dout = w.normal(GetParam(), packed.out.shape);
  for (const auto& harness : make_harnesses()) {
    SCOPED_TRACE(harness->name());
    expect_same(run(*harness, packed, dout), run(*harness, apart, dout));
  }
}

TEST_P(Attention, MasksThatHideNothingMoreGiveTheSameBits) {
  const AttentionForward causal = make(kShape, AttentionMask::causal());
  AttentionForward window = causal, full = causal, lengths = causal;
  window.mask = AttentionMask::sliding(w.coin() ? kShape.sequence : std::int64_t{1} << 40);
  full.mask = AttentionMask::full();
  lengths.mask = AttentionMask::padded(w.integers({kShape.batch}, 130, 130));
  const TensorView dout = w.normal(GetParam(), causal.out.shape);
  for (const auto& harness : make_harnesses()) {
    SCOPED_TRACE(harness->name());
    expect_same(run(*harness, causal, dout), run(*harness, window, dout));
    expect_same(run(*harness, full, dout), run(*harness, lengths, dout));
  }
}

// Causal or not, blocks of any size; and gradients of more than a megabyte, which a backend may
// write in another way.
TEST_P(Attention, ADenseLayoutOfBlocksGivesTheBitsOfDenseAttention) {
  struct Form {
    std::int64_t batch, block, blocks;
  };
  for (const auto& [batch, block, blocks] :
       {Form{1, 16, 12}, {1, 64, 3}, {1, 48, 4}, {24, 16, 4}}) {
    const AttentionShape shape{batch, block * blocks, 4, 2, 64};
    for (const bool causal : {true, false}) {
      const AttentionForward dense =
          make(shape, causal ? AttentionMask::causal() : AttentionMask::full());
      AttentionForward sparse = dense;
      sparse.mask = mask_of_blocks(w, shape, {dense_layout(block, blocks)}, causal);
      EXPECT_EQ(sparse.cost().flops, dense.cost().flops);
      const TensorView dout = w.normal(GetParam(), dense.out.shape);
      for (const auto& harness : make_harnesses()) {
        SCOPED_TRACE(harness->name());
        expect_same(run(*harness, dense, dout), run(*harness, sparse, dout));
      }
    }
  }
}

// Of a batch of more than a megabyte, which a backend may write in another way.
TEST_P(Attention, SequencesOfALargeBatchOverBlocksHaveTheBitsOfEachAlone) {
  const AttentionShape one{1, 80, 4, 2, 64};
  AttentionShape all = one;
  all.batch = 36;
  const BlockLayout local{16, {{0}, {0, 1}, {1, 2}, {2, 3}, {0, 3, 4}}};
  AttentionForward whole = make(all, {}), alone = make(one, {});
  whole.mask = mask_of_blocks(w, all, {local}, true);
  alone.mask = mask_of_blocks(w, one, {local}, true);
  const TensorView dout = w.normal(GetParam(), whole.out.shape);
  const auto part = [&](const TensorView& of, std::int64_t sequence) {
    const std::int64_t bytes = of.bytes() / all.batch;
    return TensorView{of.data + sequence * bytes, of.dtype,
                      Shape{bytes / static_cast<std::int64_t>(size_of(of.dtype))}};
  };
  for (const auto& harness : make_harnesses()) {
    SCOPED_TRACE(harness->name());
    const Results results = run(*harness, whole, dout);
    for (const std::int64_t sequence : {std::int64_t{0}, all.batch - 1}) {
      const TensorView qkv = part(whole.qkv.q.matrix, sequence);
      std::memcpy(alone.qkv.q.matrix.data, qkv.data, static_cast<std::size_t>(qkv.bytes()));
      TensorView own_dout = part(dout, sequence);
      own_dout.shape = alone.out.shape;
      const Results own = run(*harness, alone, own_dout);
      EXPECT_TRUE(same(part(results.out, sequence), own.out)) << "out";
      EXPECT_TRUE(same(part(results.lse, sequence), own.lse)) << "lse";
      EXPECT_TRUE(same(part(results.dqkv.q.matrix, sequence), own.dqkv.q.matrix)) << "dqkv";
    }
  }
}

// A query of its own at position p, over a cache with room behind, is row p of the whole.
TEST_P(Attention, AStepOverACacheIsTheRowOfTheWholeSequence) {
  for (const AttentionMask& mask : {AttentionMask::causal(), AttentionMask::sliding(70)}) {
    const AttentionForward whole = make({1, 130, 4, 2, 64}, mask);
    for (const auto& harness : make_harnesses()) {
      SCOPED_TRACE(harness->name());
      run_on(*harness, whole);
      for (const std::int64_t position : {0, 1, 63, 64, 100, 129}) {
        AttentionForward step = whole;
        step.shape.sequence = 1;
        step.shape.keys = 130;
        step.shape.first_position = position;
        step.qkv = separated(w, whole.qkv);
        step.qkv.q.matrix = step.qkv.q.matrix.row_range(position, 1);
        step.out = w.zeros(GetParam(), {1, whole.out.columns()});
        step.lse = w.zeros(wide(), {1, 4, 1});
        run_on(*harness, step);
        const double least = GetParam() == DType::bf16 ? 2e-2 : 2e-5;
        for (std::int64_t d = 0; d < step.out.count(); ++d) {
          EXPECT_NEAR(get(step.out, d), get(whole.out, position * step.out.count() + d), least);
        }
      }
    }
  }
}

// What no query of a tile of 64 sees may be anything, also not a number.
TEST_P(Attention, BlocksThatNobodySeesAreNotTouched) {
  const AttentionShape shape{1, 256, 2, 1, 64};
  const BlockLayout local{64, {{0}, {0, 1}, {1}, {1, 3}}};  // nobody sees block 2
  AttentionForward op = make(shape, {});
  op.mask = mask_of_blocks(w, shape, {local}, true);
  for (std::int64_t row = 128; row < 192; ++row) {
    for (std::int64_t d = shape.out_width(); d < shape.qkv_width(); ++d) {
      set(op.qkv.k.matrix, row * shape.qkv_width() + d, std::numeric_limits<double>::quiet_NaN());
    }
  }
  const TensorView dout = w.normal(GetParam(), op.out.shape);
  for (const auto& harness : make_harnesses()) {
    SCOPED_TRACE(harness->name());
    const Results results = run(*harness, op, dout);
    for (const TensorView& view : {results.out, results.lse, results.dqkv.q.matrix}) {
      for (std::int64_t i = 0; i < view.count(); ++i) ASSERT_TRUE(std::isfinite(get(view, i)));
    }
  }
}

// Nor what another query of the tile sees: a block that is not a number is one to those who see it.
TEST_P(Attention, ABlockThatIsNoNumberReachesThoseWhoSeeItAlone) {
  const AttentionShape shape{1, 128, 2, 1, 64};
  const BlockLayout layout{16, {{0}, {0, 1}, {2}, {0, 3}, {1, 4}, {2, 5}, {6}, {3, 7}}};
  const auto is_bad = [](std::int64_t block) { return block == 2 || block == 5; };  // see block 2
  AttentionForward op = make(shape, {});
  op.mask = mask_of_blocks(w, shape, {layout}, true);
  for (std::int64_t row = 32; row < 48; ++row) {
    for (std::int64_t d = 0; d < shape.qkv_width(); ++d) {
      set(op.qkv.k.matrix, row * shape.qkv_width() + d, std::numeric_limits<double>::quiet_NaN());
    }
  }
  const TensorView dout = w.normal(GetParam(), op.out.shape);
  for (const auto& harness : make_harnesses()) {
    SCOPED_TRACE(harness->name());
    const Results results = run(*harness, op, dout);
    for (const TensorView& view : {results.out, results.dqkv.q.matrix}) {
      const std::int64_t width = view.columns();
      for (std::int64_t i = 0; i < view.count(); ++i) {
        const std::int64_t row = i / width;
        // Queries of blocks 2 and 5 see it; of the keys and values, those that such a query sees.
        if (is_bad(row / 16)) continue;
        ASSERT_TRUE(std::isfinite(get(view, i))) << "row " << row << ", column " << i % width;
      }
    }
    EXPECT_TRUE(std::isnan(get(results.out, 40 * results.out.columns())));
    EXPECT_TRUE(std::isnan(get(results.out, 90 * results.out.columns())));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Attention, testing::Values(DType::f32, DType::bf16),
                         [](const auto& p) { return name_of(p.param); });

TEST(AttentionMask, CountsThePairsThatItLetsSee) {
  for (const std::int64_t window : {0, 1, 3, 7, 100}) {
    for (const std::int64_t queries : {0, 1, 5, 9}) {
      for (const std::int64_t before : {0, 1, 6}) {
        for (const std::int64_t room : {0, 4}) {
          const AttentionMask mask =
              window == 0 ? AttentionMask::causal() : AttentionMask::sliding(window);
          const std::int64_t keys = before + queries + room;
          std::int64_t pairs = 0;
          for (std::int64_t p = before; p < before + queries; ++p) {
            for (std::int64_t j = 0; j <= p; ++j) pairs += window == 0 || p - j < window;
          }
          EXPECT_EQ(mask.pairs(queries, keys, before), pairs);
          EXPECT_EQ(AttentionMask::full().pairs(queries, keys, before), queries * keys);
        }
      }
    }
  }
}

// The figures that calibration files and golden runs are made of.
TEST(AttentionMask, CostOfPackedCausalAttention) {
  const AttentionShape s{3, 1000, 12, 4, 64};
  std::byte memory[1];
  const auto view = [&](DType dtype, const Shape& shape) {
    return TensorView{memory, dtype, shape};
  };
  const QkvViews qkv = packed_qkv(view(DType::bf16, {3000, 20 * 64}), s);
  const TensorView out = view(DType::bf16, {3000, 768}), lse = view(DType::f32, {3, 12, 1000});
  const Cost forward = AttentionForward{qkv, out, lse, s, 1, {}}.cost();
  EXPECT_EQ(forward.flops, 2.0 * 3 * 12 * 64 * 1000 * 1001);
  EXPECT_EQ(forward.bytes_read, 3000 * 1280 * 2);
  EXPECT_EQ(forward.bytes_written, 3000 * 768 * 2 + 36000 * 4);
  EXPECT_EQ(forward.m, 36);
  EXPECT_EQ(forward.n, 1000);
  EXPECT_EQ(forward.k, 64);
  const Cost backward = AttentionBackward{out, out, qkv, lse, qkv, lse, s, 1, {}}.cost();
  EXPECT_EQ(backward.flops, 5.0 * 3 * 12 * 64 * 1000 * 1001);
  EXPECT_EQ(backward.bytes_read, 2 * 3000 * 768 * 2 + 3000 * 1280 * 2 + 36000 * 4);
  EXPECT_EQ(backward.bytes_written, 3000 * 1280 * 2 + 36000 * 4);
}

}  // namespace
}  // namespace zl::test
