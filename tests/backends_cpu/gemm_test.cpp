// Matrix products: every type, layout and epilogue against sums in double; reproducibility.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/ops/gemm_eigen.h"
#include "backends/cpu/ops/gemm_onednn.h"
#include "backends/cpu/ops/gemm_packed.h"
#include "core/ops/matmul.h"

namespace zl::cpu {
namespace {

using Kernel = void (*)(const Gemm&, const ExecContext&);

double value_at(const TensorView& view, std::int64_t i) {
  switch (view.dtype) {
    case DType::f64:
      return view.as<double>()[i];
    case DType::f32:
      return view.as<float>()[i];
    case DType::bf16:
      return to_float(view.as<bfloat16>()[i]);
    default:
      return to_float(view.as<float16>()[i]);
  }
}

void set_value(const TensorView& view, std::int64_t i, double value) {
  const float single = static_cast<float>(value);
  switch (view.dtype) {
    case DType::f64:
      view.as<double>()[i] = value;
      break;
    case DType::f32:
      view.as<float>()[i] = single;
      break;
    case DType::bf16:
      view.as<bfloat16>()[i] = to_bfloat16(single);
      break;
    default:
      view.as<float16>()[i] = to_float16(single);
  }
}

// A tensor of random values at `offset` bytes from a cache line.
struct Matrix {
  std::vector<std::byte> bytes;
  TensorView view;

  Matrix(DType dtype, const Shape& shape, unsigned seed, std::size_t offset = 0)
      : bytes(static_cast<std::size_t>(shape.count()) * size_of(dtype) + 128 + offset) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    view = {bytes.data() + (64 - address % 64) + offset, dtype, shape};
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::int64_t i = 0; i < view.count(); ++i) set_value(view, i, uniform(random));
  }
};

struct Case {
  std::int64_t m, n, k;
  DType in, out;
  bool trans_a, trans_b, accumulate, bias;
};

struct Problem {
  Matrix a, b, c, bias;

  explicit Problem(const Case& t, std::size_t offset = 0)
      : a(t.in, t.trans_a ? Shape{t.k, t.m} : Shape{t.m, t.k}, 1, offset),
        b(t.in, t.trans_b ? Shape{t.n, t.k} : Shape{t.k, t.n}, 2, offset),
        c(t.out, Shape{t.m, t.n}, 3, offset),
        bias(t.in, Shape{t.n}, 4, offset) {}

  Gemm op(const Case& t) const {
    Gemm gemm{a.view, b.view, c.view, t.bias ? bias.view : TensorView{}};
    gemm.trans_a = t.trans_a, gemm.trans_b = t.trans_b, gemm.accumulate = t.accumulate;
    return gemm;
  }
  std::vector<double> expected(const Case& t) const {
    std::vector<double> sums;
    for (std::int64_t i = 0; i < t.m; ++i) {
      for (std::int64_t j = 0; j < t.n; ++j) {
        long double sum = (t.accumulate ? value_at(c.view, i * t.n + j) : 0.0) +
                          (t.bias ? value_at(bias.view, j) : 0.0);
        for (std::int64_t k = 0; k < t.k; ++k) {
          sum += static_cast<long double>(value_at(a.view, t.trans_a ? k * t.m + i : i * t.k + k)) *
                 value_at(b.view, t.trans_b ? j * t.k + k : k * t.n + j);
        }
        sums.push_back(static_cast<double>(sum));
      }
    }
    return sums;
  }
};

double unit_roundoff(DType dtype) {
  return dtype == DType::f64   ? 0x1p-53
         : dtype == DType::f32 ? 0x1p-24
         : dtype == DType::f16 ? 0x1p-11
                               : 0x1p-8;
}

void check(Kernel kernel, const Case& t, int threads) {
  Problem problem(t);
  const std::vector<double> expected = problem.expected(t);
  kernel(problem.op(t), {threads});
  const double sum_error =
      static_cast<double>(t.k + 2) * unit_roundoff(t.in == DType::f64 ? DType::f64 : DType::f32);
  for (std::int64_t i = 0; i < t.m * t.n; ++i) {
    const double want = expected[static_cast<std::size_t>(i)];
    const double bound = sum_error + unit_roundoff(t.out) * std::abs(want);
    ASSERT_NEAR(value_at(problem.c.view, i), want, bound)
        << t.m << "x" << t.n << "x" << t.k << " " << name_of(t.in) << " to " << name_of(t.out)
        << " trans " << t.trans_a << t.trans_b << " accumulate " << t.accumulate << " bias "
        << t.bias << " threads " << threads << " element " << i;
  }
}

// Every layout and epilogue of one shape and type.
void check_all(Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k, DType in, DType out) {
  for (int flags = 0; flags < 16; ++flags) {
    const Case t{
        m, n, k, in, out, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};
    check(kernel, t, 1 + flags % 3);
  }
}

constexpr std::int64_t kShapes[][3] = {{1, 1, 1},    {3, 5, 7},      {1, 49, 400}, {65, 1, 33},
                                       {64, 64, 64}, {70, 100, 391}, {9, 700, 20}};

TEST(PackedGemm, MatchesDoubleForEveryTypeAndLayout) {
  for (const auto& [m, n, k] : kShapes) {
    for (const DType type : {DType::bf16, DType::f16}) {
      check_all(packed_gemm, m, n, k, type, type);
      check_all(packed_gemm, m, n, k, type, DType::f32);
    }
  }
}

// Also where oneDNN would take the fp32 products.
TEST(EigenGemm, MatchesDoubleForEveryLayout) {
  for (const auto& [m, n, k] : kShapes) {
    for (const DType type : {DType::f64, DType::f32}) check_all(eigen_gemm, m, n, k, type, type);
  }
  check(eigen_gemm, {400, 1030, 20, DType::f32, DType::f32, true, false, true, true}, 2);
}

TEST(EigenGemm, ThreadsDoNotChangeTheResult) {
  const Case t{400, 600, 300, DType::f32, DType::f32, false, true, true, true};
  Problem one(t), three(t);
  eigen_gemm(one.op(t), {1});
  eigen_gemm(three.op(t), {3});
  EXPECT_EQ(std::memcmp(one.c.view.data, three.c.view.data, 400 * 600 * 4), 0);
}

TEST(PackedGemm, CutsLongOutputsInChunks) {
  check(packed_gemm, {2100, 3, 5, DType::bf16, DType::bf16, false, true, true, true}, 2);
  check(packed_gemm, {2100, 3, 5, DType::bf16, DType::f32, true, false, false, true}, 2);
}

TEST(PackedGemm, ThreadsDoNotChangeTheResult) {
  const Case t{130, 300, 500, DType::bf16, DType::f32, false, true, true, true};
  Problem one(t), three(t);
  packed_gemm(one.op(t), {1});
  packed_gemm(three.op(t), {3});
  EXPECT_EQ(std::memcmp(one.c.view.data, three.c.view.data, 130 * 300 * 4), 0);
}

TEST(Gemm, MatchesDoubleWhateverKernelIsChosen) {
  const Kernel chosen = [](const Gemm& op, const ExecContext& context) { execute(op, context); };
  for (const auto& [m, n, k] : kShapes) {
    check_all(chosen, m, n, k, DType::f64, DType::f64);
    check_all(chosen, m, n, k, DType::f32, DType::f32);
    check_all(chosen, m, n, k, DType::bf16, DType::f32);
    check_all(chosen, m, n, k, DType::f16, DType::f16);
  }
}

bool processor_has(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  while (std::getline(file, flags) && !flags.starts_with("flags")) {
  }
  return (flags + " ").find(" " + flag + " ") != std::string::npos;
}

// Also on processors where bf16 would take the packed kernel; oneDNN itself has none below AVX-512.
TEST(OnednnGemm, MatchesDouble) {
  if (!onednn_prefers({})) GTEST_SKIP() << "oneDNN is not built in";
  for (const auto& [m, n, k] : kShapes) {
    check_all(onednn_gemm, m, n, k, DType::f32, DType::f32);
    if (!processor_has("avx512bw")) continue;
    check_all(onednn_gemm, m, n, k, DType::bf16, DType::bf16);
    check_all(onednn_gemm, m, n, k, DType::bf16, DType::f32);
  }
}

// x W and dW of few rows or columns whose operands' rows lie a multiple of 2 KiB apart: without
// AVX-512, which OnednnWithoutAvx512 (tests/CMakeLists.txt) forbids, the products of copies, in
// parts where those are large.
TEST(OnednnGemm, MatchesDoubleWhereRowsCollide) {
  if (!onednn_prefers({})) GTEST_SKIP() << "oneDNN is not built in";
  const auto f32 = DType::f32;
  for (const int threads : {1, 2}) {
    const bool add = threads == 2;
    check(onednn_gemm, {8, 1024, 50, f32, f32, false, false, add, !add}, threads);
    check(onednn_gemm, {8, 16384, 80, f32, f32, false, false, add, add}, threads);  // in parts
    check(onednn_gemm, {16384, 8, 80, f32, f32, true, false, add, false}, threads);
    check(onednn_gemm, {8, 512, 70, f32, f32, true, false, add, !add}, threads);
    check(onednn_gemm, {512, 512, 9, f32, f32, true, false, add, false}, threads);
    check(onednn_gemm, {512, 8, 0, f32, f32, true, false, add, !add}, threads);
  }
}

// What the kernel says of the processor decides, nothing that could change from run to run.
TEST(OnednnGemm, MultipliesBf16WhereTheProcessorDoes) {
  if (!onednn_prefers({})) GTEST_SKIP() << "oneDNN is not built in";
  if (std::getenv("DNNL_MAX_CPU_ISA") != nullptr) GTEST_SKIP() << "DNNL_MAX_CPU_ISA is set";
  const bool has_units = processor_has("avx512_bf16");
  const auto prefers = [](DType type) {
    Gemm op;
    op.a.dtype = type;
    return onednn_prefers(op);
  };
  EXPECT_EQ(prefers(DType::bf16), has_units);
  EXPECT_TRUE(prefers(DType::f32));
  EXPECT_FALSE(prefers(DType::f16));
  EXPECT_FALSE(prefers(DType::f64));
}

// Repeats, and buffers at other alignments, give the same bits.
TEST(Gemm, ResultsDoNotDependOnAlignment) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (int flags = 0; flags < 8; ++flags) {
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{96, 160, 450}, {33, 50, 61}}) {
        const Case t{m,   n, k, type, type, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0,
                     true};
        Problem reference(t);
        execute(reference.op(t), {2});
        for (const std::size_t offset : {0u, 8u, 24u, 40u}) {
          Problem other(t, offset);
          execute(other.op(t), {2});
          ASSERT_EQ(std::memcmp(reference.c.view.data, other.c.view.data,
                                static_cast<std::size_t>(reference.c.view.bytes())),
                    0)
              << name_of(type) << " flags " << flags << " offset " << offset;
        }
      }
    }
  }
}

TEST(Gemm, RanksMayMultiplyAtOnce) {
  const Case t{120, 144, 500, DType::f32, DType::f32, false, true, false, true};
  Problem reference(t);
  execute(reference.op(t), {2});
  std::vector<std::thread> ranks;
  std::vector<int> same(4, 1);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      for (int repeat = 0; repeat < 10; ++repeat) {
        Problem mine(t, 8 * rank);
        execute(mine.op(t), {2});
        same[rank] &= std::memcmp(mine.c.view.data, reference.c.view.data, 120 * 144 * 4) == 0;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(same, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace zl::cpu
