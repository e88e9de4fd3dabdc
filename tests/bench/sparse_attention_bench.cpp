// Attention over layouts of blocks beside dense causal attention of the same length, each iteration
// one after the other: time over density x the dense time (1: a block costs what it costs in dense
// attention), and the speed-up. And both directions of a sequence ten times as long beside dense.
// OMP_WAIT_POLICY=passive zerolab_bench --benchmark_filter=sparse_attention
#include <cmath>
#include <span>
#include <string>

#include "backends/cpu/ops/ops.h"
#include "core/model/block_layouts.h"
#include "core/ops/attention.h"
#include "core/ops/elementwise.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;
using zl::bench::Storage;

struct SparseProblem {
  AttentionShape shape;
  BlockLayout layout;
  BlockTable table;
  Storage qkv, out, lse, dout, dqkv, delta;

  SparseProblem(const AttentionShape& s, const SparseAttentionConfig& config, DType type)
      : shape(s),
        layout(block_layouts(config, {.sequence = s.sequence, .heads = s.heads}).front()),
        table(block_table(std::span(&layout, 1), true)),
        qkv(type, Shape{s.rows(), s.qkv_width()}),
        out(type, Shape{s.rows(), s.out_width()}),
        lse(DType::f32, Shape{s.rows() * s.heads}),
        dout(type, out.view.shape),
        dqkv(type, qkv.view.shape),
        delta(DType::f32, lse.view.shape) {
    cpu::execute(RandomNormal{qkv.view, 1.0, {1, 0, 0}, 0}, {1});
    cpu::execute(RandomNormal{dout.view, 1.0, {2, 0, 0}, 0}, {1});
  }

  AttentionMask mask() {
    const TensorView words{reinterpret_cast<std::byte*>(table.words.data()), DType::i32,
                           Shape{static_cast<std::int64_t>(table.words.size())}};
    return AttentionMask::sparse(words, 1, table.pairs * shape.heads, true);
  }
  // Blocks that exist, of those of the causal triangle.
  double density() const {
    const auto blocks = static_cast<double>(layout.rows.size());
    return static_cast<double>(layout.active()) / (blocks * (blocks + 1) / 2);
  }
  // Seconds of one direction.
  double time(const AttentionMask& seen, bool is_forward, int threads) const {
    const double scale = 1.0 / std::sqrt(static_cast<double>(shape.head_size));
    const QkvViews views = packed_qkv(qkv.view, shape);
    const AttentionForward forward{views, out.view, lse.view, shape, scale, {}, seen};
    if (!is_forward) cpu::execute(forward, {threads});
    const double begin = zl::bench::seconds(threads);
    if (is_forward) {
      cpu::execute(forward, {threads});
    } else {
      cpu::execute(AttentionBackward{dout.view,
                                     out.view,
                                     views,
                                     lse.view,
                                     packed_qkv(dqkv.view, shape),
                                     delta.view,
                                     shape,
                                     scale,
                                     {},
                                     seen},
                   {threads});
    }
    return zl::bench::seconds(threads) - begin;
  }
};

void add(const char* name, SparseAttentionConfig config, std::int64_t block, std::int64_t sequence,
         DType type, int threads) {
  config.block = block;
  config.bidirectional = false;
  for (const bool is_forward : {true, false}) {
    const std::string full = std::string("sparse_attention_") +
                             (is_forward ? "forward/" : "backward/") + name + "/" + name_of(type) +
                             "/block:" + std::to_string(block) + "/t:" + std::to_string(sequence) +
                             "/threads:" + std::to_string(threads);
    const auto run = [=](benchmark::State& state) {
      SparseProblem p({1, sequence, 4, 4, 64}, config, type);
      std::vector<double> sparse, dense;
      p.time(p.mask(), is_forward, threads);
      for (auto _ : state) {
        sparse.push_back(p.time(p.mask(), is_forward, threads));
        dense.push_back(p.time({}, is_forward, threads));
        state.SetIterationTime(sparse.back());
      }
      const double share = zl::bench::median(sparse) / zl::bench::median(dense);
      state.counters["ms"] = 1e3 * zl::bench::median(sparse);
      state.counters["density"] = p.density();
      state.counters["speedup"] = 1 / share;
      state.counters["over_density"] = share / p.density();
    };
    benchmark::RegisterBenchmark(full.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
  }
}

// Both directions over a layout of blocks of 16 beside dense ones of a tenth of the sequence.
void add_ten_times(const char* name, SparseAttentionConfig config, DType type) {
  constexpr std::int64_t kDense = 4096;
  config.bidirectional = false;
  const std::string full =
      std::string("sparse_attention_ten_times/") + name + "/" + name_of(type) + "/t:40960";
  const auto run = [=](benchmark::State& state) {
    SparseProblem p({1, 10 * kDense, 4, 4, 64}, config, type);
    const SparseProblem tenth({1, kDense, 4, 4, 64}, config, type);
    std::vector<double> sparse, dense;
    for (const bool is_forward : {true, false}) p.time(p.mask(), is_forward, 1);
    for (auto _ : state) {
      sparse.push_back(p.time(p.mask(), true, 1) + p.time(p.mask(), false, 1));
      dense.push_back(tenth.time({}, true, 1) + tenth.time({}, false, 1));
      state.SetIterationTime(sparse.back());
    }
    state.counters["ms"] = 1e3 * zl::bench::median(sparse);
    state.counters["dense_tenth_ms"] = 1e3 * zl::bench::median(dense);
    state.counters["of_dense_tenth"] = zl::bench::median(sparse) / zl::bench::median(dense);
  };
  benchmark::RegisterBenchmark(full.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
}

const int registered_layouts = [] {
  SparseAttentionConfig fixed, longformer, local, bigbird;
  fixed.mode = SparseMode::fixed;
  longformer.mode = SparseMode::bslongformer;
  local.mode = SparseMode::local_sliding;
  bigbird.mode = SparseMode::bigbird;
  bigbird.num_random_blocks = 1;
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t sequence : {1024, 4096, 16384}) {
      for (const std::int64_t block : {16, 64}) {
        add("fixed", fixed, block, sequence, type, 1);
        add("bslongformer", longformer, block, sequence, type, 1);
        add("bigbird", bigbird, block, sequence, type, 1);
        add("local", local, block, sequence, type, 1);
      }
    }
    add_ten_times("bslongformer", longformer, type);
    add_ten_times("bigbird", bigbird, type);
    add_ten_times("local", local, type);
  }
  return 0;
}();

}  // namespace
