// Which ops the epilogue of a product takes over: every condition on its own.
#include "backends/cuda/product.h"
#include "core/ops/op.h"

#include <gtest/gtest.h>

namespace zl::cuda {
namespace {

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

constexpr std::int64_t kRows = 6, kWidth = 16, kDepth = 8;

// up[n,F] = x[n,C] W[F,C]^T + bias, then act = gelu(up).
struct Up {
  Gemm gemm{{at(0x1000), DType::bf16, {kRows, kDepth}},
            {at(0x2000), DType::bf16, {kWidth, kDepth}},
            {at(0x3000), DType::bf16, {kRows, kWidth}},
            {at(0x4000), DType::bf16, {kWidth}},
            false,
            true,
            false};
  ActivationForward gelu{
      ActivationKind::gelu_tanh, gemm.c, {at(0x5000), DType::bf16, {kRows, kWidth}}};

  bool fuses(bool deterministic = false) const {
    return fuse(gemm, gelu, deterministic).has_value();
  }
};

TEST(FuseGelu, TakesTheActivationAndKeepsItsInput) {
  Up up;
  const auto product = fuse(up.gemm, up.gelu, false);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->epilogue, Epilogue::gelu_bias);
  EXPECT_EQ(product->result.data, up.gelu.y.data);
  EXPECT_EQ(product->aux.data, up.gemm.c.data);
  EXPECT_EQ(product->vector.data, up.gemm.bias.data);
  up.gemm.bias = {};
  const auto plain = fuse(up.gemm, up.gelu, false);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->epilogue, Epilogue::gelu);
  EXPECT_TRUE(plain->vector.empty());
}

// Recomputation starts from the stored, rounded input.
TEST(FuseGelu, NotInDeterministicMode) { EXPECT_FALSE(Up().fuses(true)); }

TEST(FuseGelu, OnlyTheTanhOfTheProductsOwnResult) {
  const auto changed = [](auto&& change) {
    Up up;
    change(up);
    return up.fuses();
  };
  EXPECT_TRUE(changed([](Up&) {}));
  EXPECT_FALSE(changed([](Up& up) { up.gelu.kind = ActivationKind::gelu_erf; }));
  EXPECT_FALSE(changed([](Up& up) { up.gelu.kind = ActivationKind::swiglu; }));
  EXPECT_FALSE(changed([](Up& up) { up.gelu.x.data = at(0x6000); }));
  EXPECT_FALSE(changed([](Up& up) { up.gelu.x = up.gelu.x.row_range(0, kRows - 1); }));
}

TEST(FuseGelu, NotOverWhatIsStillRead) {
  for (const std::uintptr_t y : {0x1000, 0x2000, 0x3000, 0x4000, 0x3010, 0x2ff0}) {
    Up up;
    up.gelu.y.data = at(y);
    EXPECT_FALSE(up.fuses()) << y;
  }
}

TEST(FuseGelu, OnlyWhereTheLibraryTakesTheMatrices) {
  const auto changed = [](auto&& change) {
    Up up;
    change(up);
    return up.fuses();
  };
  EXPECT_FALSE(changed([](Up& up) { up.gelu.y.data = at(0x5008); }));
  EXPECT_FALSE(changed([](Up& up) { up.gelu.x.data = up.gemm.c.data = at(0x3008); }));
  EXPECT_FALSE(changed([](Up& up) { up.gemm.bias.data = at(0x4002); }));
  EXPECT_FALSE(changed([](Up& up) { up.gemm.accumulate = true; }));
  EXPECT_FALSE(changed([](Up& up) {
    for (TensorView* view :
         {&up.gemm.a, &up.gemm.b, &up.gemm.c, &up.gemm.bias, &up.gelu.x, &up.gelu.y}) {
      view->dtype = DType::f32;
    }
  }));
  EXPECT_FALSE(changed([](Up& up) { up.gemm.c.dtype = up.gelu.x.dtype = DType::f32; }));
  EXPECT_FALSE(changed([](Up& up) {  // 12 columns: not a multiple of 8
    up.gemm.b.shape = {12, kDepth};
    up.gemm.c.shape = up.gelu.x.shape = up.gelu.y.shape = {kRows, 12};
    up.gemm.bias.shape = {12};
  }));
}

// dact[n,F] = dout[n,C] W[C,F], then gelu' of the input in its place.
struct Down {
  Gemm gemm{{at(0x1000), DType::f16, {kRows, kDepth}},
            {at(0x2000), DType::f16, {kDepth, kWidth}},
            {at(0x3000), DType::f16, {kRows, kWidth}},
            {},
            false,
            false,
            false};
  ActivationBackward gelu{
      ActivationKind::gelu_tanh, {at(0x5000), DType::f16, {kRows, kWidth}}, gemm.c, gemm.c};
};

TEST(FuseGeluGradient, TakesItInPlaceInEveryMode) {
  const Down down;
  for (const bool deterministic : {false, true}) {
    const auto product = fuse(down.gemm, down.gelu, deterministic);
    ASSERT_TRUE(product);
    EXPECT_EQ(product->epilogue, Epilogue::gelu_gradient);
    EXPECT_EQ(product->result.data, down.gemm.c.data);
    EXPECT_EQ(product->aux.data, down.gelu.x.data);
    EXPECT_TRUE(product->vector.empty());
  }
}

TEST(FuseGeluGradient, NotOtherwise) {
  const auto changed = [](auto&& change) {
    Down down;
    change(down);
    return fuse(down.gemm, down.gelu, true).has_value();
  };
  EXPECT_TRUE(changed([](Down&) {}));
  EXPECT_FALSE(changed([](Down& d) { d.gelu.dx.data = at(0x6000); }));
  EXPECT_FALSE(changed([](Down& d) { d.gelu.dy.data = at(0x6000); }));
  EXPECT_FALSE(changed([](Down& d) { d.gelu.dx = d.gelu.x; }));
  EXPECT_FALSE(changed([](Down& d) { d.gelu.x.data = d.gemm.c.data; }));
  EXPECT_FALSE(changed([](Down& d) { d.gelu.x.data = at(0x5002); }));
  EXPECT_FALSE(changed([](Down& d) { d.gelu.kind = ActivationKind::gelu_erf; }));
  EXPECT_FALSE(changed([](Down& d) { d.gemm.accumulate = true; }));
  EXPECT_FALSE(changed([](Down& d) { d.gemm.bias = {at(0x4000), DType::f16, {kWidth}}; }));
}

// dW[F,C] = dout[n,F]^T x[n,C], then the column sums of dout.
struct Weight {
  Gemm gemm{{at(0x1000), DType::bf16, {kRows, kWidth}},
            {at(0x2000), DType::bf16, {kRows, kDepth}},
            {at(0x3000), DType::f32, {kWidth, kDepth}},
            {},
            true,
            false,
            false};
  BiasBackward bias{gemm.a, {at(0x5000), DType::f32, {kWidth}}, false};
};

TEST(FuseBiasGradient, TakesTheSumsOfItsOwnRows) {
  Weight weight;
  for (const bool accumulate : {false, true}) {
    weight.gemm.accumulate = accumulate;
    const auto product = fuse(weight.gemm, weight.bias, false);
    ASSERT_TRUE(product);
    EXPECT_EQ(product->epilogue, Epilogue::bias_gradient);
    EXPECT_EQ(product->vector.data, weight.bias.dbias.data);
    EXPECT_EQ(product->result.data, weight.gemm.c.data);
    EXPECT_TRUE(product->aux.empty());
  }
}

TEST(FuseBiasGradient, NotOtherwise) {
  const auto changed = [](auto&& change, bool deterministic = false) {
    Weight weight;
    change(weight);
    return fuse(weight.gemm, weight.bias, deterministic).has_value();
  };
  EXPECT_TRUE(changed([](Weight&) {}));
  EXPECT_FALSE(changed([](Weight&) {}, true));
  EXPECT_FALSE(changed([](Weight& w) { w.bias.accumulate = true; }));
  EXPECT_FALSE(changed([](Weight& w) { w.bias.dout.data = at(0x6000); }));
  EXPECT_FALSE(changed([](Weight& w) { w.bias.dout = w.gemm.b; }));
  EXPECT_FALSE(changed([](Weight& w) { w.bias.dbias.data = at(0x5004); }));
  EXPECT_FALSE(changed([](Weight& w) { w.bias.dbias.data = w.gemm.c.data; }));
  EXPECT_FALSE(changed([](Weight& w) { w.bias.dbias.dtype = DType::bf16; }));
  EXPECT_FALSE(changed([](Weight& w) {  // a square factor that is not transposed
    w.gemm.a.shape = {kWidth, kWidth};
    w.gemm.b.shape = {kWidth, kDepth};
    w.bias.dout = w.gemm.a;
    w.gemm.trans_a = false;
  }));
}

TEST(Fuse, NothingElse) {
  const Weight weight;
  EXPECT_FALSE(fuse(weight.gemm, weight.gemm, false));
  EXPECT_FALSE(fuse(weight.gemm, Fill{weight.gemm.c, 0}, false));
  Weight empty;
  empty.gemm.a.shape = empty.bias.dout.shape = {0, kWidth};
  empty.gemm.b.shape = {0, kDepth};
  EXPECT_FALSE(may_fuse(empty.gemm));
  EXPECT_FALSE(fuse(empty.gemm, empty.bias, false));
}

}  // namespace
}  // namespace zl::cuda
