// Matrix products of a GPT-2 124M step (forward x W^T, input gradient dy W, weight gradient dy^T x)
// as a fraction of the fp32 multiply-add peak. Each is verified on random elements first.
// OMP_WAIT_POLICY=passive zerolab_bench --benchmark_filter=gemm
#include <cmath>
#include <random>
#include <string>

#include "backends/cpu/ops/gemm_eigen.h"
#include "backends/cpu/ops/gemm_onednn.h"
#include "backends/cpu/ops/gemm_packed.h"
#include "core/ops/matmul.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;

struct Matrix : zl::bench::Storage {
  Matrix(DType dtype, const Shape& shape, unsigned seed) : Storage(dtype, shape) {
    std::minstd_rand random(seed);
    for (std::int64_t i = 0; i < view.count(); ++i) {
      const float value = static_cast<float>(random() % 2001) * 1e-3f - 1.0f;
      if (dtype == DType::f32) view.as<float>()[i] = value;
      if (dtype == DType::bf16) view.as<bfloat16>()[i] = to_bfloat16(value);
    }
  }
  double at(std::int64_t i) const {
    return view.dtype == DType::f32 ? view.as<float>()[i] : to_float(view.as<bfloat16>()[i]);
  }
};

struct Product {
  std::int64_t m, n, k;
  bool trans_a, trans_b;

  std::string name() const {
    return std::string(trans_a   ? "TN"
                       : trans_b ? "NT"
                                 : "NN") +
           "/" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

constexpr std::int64_t kRows = 1024, kHidden = 768, kVocab = 50304;
constexpr Product kProducts[] = {
    {kRows, 3 * kHidden, kHidden, false, true},
    {kRows, kHidden, kHidden, false, true},
    {kRows, 4 * kHidden, kHidden, false, true},
    {kRows, kHidden, 4 * kHidden, false, true},
    {kRows, kHidden, 3 * kHidden, false, false},
    {kRows, kHidden, kHidden, false, false},
    {kRows, kHidden, 4 * kHidden, false, false},
    {kRows, 4 * kHidden, kHidden, false, false},
    {3 * kHidden, kHidden, kRows, true, false},
    {kHidden, kHidden, kRows, true, false},
    {4 * kHidden, kHidden, kRows, true, false},
    {kHidden, 4 * kHidden, kRows, true, false},
    {kRows, kVocab, kHidden, false, true},
    {kRows, kHidden, kVocab, false, false},
    {kVocab, kHidden, kRows, true, false},
    {64, 64, 64, false, true},
    // Rows of whole pages.
    {1024, 256, 512, true, false},
    {64, 1024, 4096, false, false},
};

bool correct(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c,
             const Matrix& bias) {
  std::minstd_rand random(7);
  for (int sample = 0; sample < 200; ++sample) {
    const std::int64_t i = random() % p.m, j = random() % p.n;
    double sum = bias.at(j), size = std::abs(sum);
    for (std::int64_t k = 0; k < p.k; ++k) {
      const double term =
          a.at(p.trans_a ? k * p.m + i : i * p.k + k) * b.at(p.trans_b ? j * p.k + k : k * p.n + j);
      sum += term, size += std::abs(term);
    }
    const double tolerance = size * 1e-5 + (c.view.dtype == DType::bf16 ? std::abs(sum) / 128 : 0);
    if (!(std::abs(c.at(i * p.n + j) - sum) <= tolerance)) return false;
  }
  return true;
}

void run(benchmark::State& state, const Product& p, DType type, int threads,
         void (*kernel)(const Gemm&, const cpu::ExecContext&)) {
  // As in training: activations in the compute type, weight gradients in fp32.
  const DType out = p.trans_a ? DType::f32 : type;
  const Matrix a(type, p.trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k}, 1);
  const Matrix b(type, p.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, 2);
  const Matrix bias(type, Shape{p.n}, 3);
  const Matrix c(out, Shape{p.m, p.n}, 4);
  Gemm op{a.view, b.view, c.view, bias.view};
  op.trans_a = p.trans_a, op.trans_b = p.trans_b;
  kernel(op, {threads});
  if (!correct(p, a, b, c, bias)) {
    state.SkipWithError("wrong product");
    return;
  }
  if (!p.trans_b) op.bias = {};
  zl::bench::run_paired(state, threads, op.cost().flops, [&] { kernel(op, {threads}); });
}

void add(const std::string& family, DType type,
         void (*kernel)(const Gemm&, const cpu::ExecContext&)) {
  for (const int threads : {1, 2}) {
    for (const Product& p : kProducts) {
      const std::string name =
          family + "/" + name_of(type) + "/" + p.name() + "/threads:" + std::to_string(threads);
      const auto body = [=](benchmark::State& state) { run(state, p, type, threads, kernel); };
      benchmark::RegisterBenchmark(name.c_str(), body)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

const int registered = [] {
  for (const DType type : {DType::f32, DType::bf16}) {
    add("gemm", type, cpu::execute);
    if (cpu::onednn_prefers({})) add("gemm_onednn", type, cpu::onednn_gemm);
  }
  add("gemm_eigen", DType::f32, cpu::eigen_gemm);
  add("gemm_packed", DType::bf16, cpu::packed_gemm);
  return 0;
}();

}  // namespace
