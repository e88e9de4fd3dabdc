// Causal attention forward and backward as a fraction of the fp32 multiply-add peak, counting the
// causal half only. The output is verified against a direct softmax first.
// OMP_WAIT_POLICY=passive zerolab_bench --benchmark_filter=attention
#include <cmath>
#include <string>

#include "tests/bench/attention_problem.h"

namespace {

using namespace zl;

using zl::bench::value_at;
using Problem = zl::bench::AttentionProblem;

// Element d of head h in the last row of the first sequence.
double direct(const Problem& p, std::int64_t h, std::int64_t d) {
  const AttentionShape& s = p.shape;
  const std::int64_t last = s.sequence - 1, kv = h / (s.heads / s.kv_heads);
  double total = 0, sum = 0;
  for (std::int64_t j = 0; j < s.sequence; ++j) {
    double score = 0;
    for (std::int64_t i = 0; i < s.head_size; ++i) {
      score += value_at(p.qkv.view, last * s.qkv_width() + h * s.head_size + i) *
               value_at(p.qkv.view, j * s.qkv_width() + (s.heads + kv) * s.head_size + i);
    }
    const double weight = std::exp(score * p.scale());
    total += weight;
    sum += weight *
           value_at(p.qkv.view, j * s.qkv_width() + (s.heads + s.kv_heads + kv) * s.head_size + d);
  }
  return sum / total;
}

bool correct(const Problem& p) {
  const AttentionShape& s = p.shape;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const double want = direct(p, h, 1);
    const double got = value_at(p.out.view, (s.sequence - 1) * s.out_width() + h * s.head_size + 1);
    if (!(std::abs(got - want) <= 1e-2 * std::abs(want) + 1e-3)) return false;
  }
  return true;
}

void add(const char* name, const AttentionShape& shape, DType type, int threads) {
  const std::string suffix =
      std::string("/") + name + "/" + name_of(type) + "/threads:" + std::to_string(threads);
  const auto forward = [=](benchmark::State& state) {
    const Problem p(shape, type);
    const AttentionForward op = p.forward();
    cpu::execute(op, {threads});
    if (!correct(p)) return state.SkipWithError("wrong attention");
    zl::bench::run_paired(state, threads, op.cost().flops, [&] { cpu::execute(op, {threads}); });
  };
  const auto backward = [=](benchmark::State& state) {
    const Problem p(shape, type);
    cpu::execute(p.forward(), {threads});
    if (!correct(p)) return state.SkipWithError("wrong attention");
    const AttentionBackward op = p.backward();
    zl::bench::run_paired(state, threads, op.cost().flops, [&] { cpu::execute(op, {threads}); });
  };
  for (const bool is_forward : {true, false}) {
    const std::string full = (is_forward ? "attention_forward" : "attention_backward") + suffix;
    auto* added = is_forward ? benchmark::RegisterBenchmark(full.c_str(), forward)
                             : benchmark::RegisterBenchmark(full.c_str(), backward);
    added->UseManualTime()->Unit(benchmark::kMillisecond);
  }
}

const int registered = [] {
  for (const int threads : {1, 2}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      add("gpt2_b4_t256", {4, 256, 12, 12, 64}, type, threads);
      add("gpt2_b1_t1024", {1, 1024, 12, 12, 64}, type, threads);
      add("llama_b1_t1024", {1, 1024, 16, 4, 128}, type, threads);
    }
  }
  return 0;
}();

}  // namespace
