// A step of attention, forward and backward, over layouts of blocks beside dense causal attention
// of the same length, in turn: after one step of each kind over what the other left behind, as many
// of the sparse kind as do the work of a dense one, so that a neighbour on the same core, who comes
// and goes, finds both alike. The time of these over that of the dense step beside them (1: a block
// costs what it costs in dense attention), of both directions and of each, and the speed-up; that
// of the first over density x the first; that of the quickest over density x the quickest; in the
// same parts, the time of moving once what it has to. Medians of paired ratios. And a step of a
// sequence ten times as long beside a dense one. Rows of every result are compared with a masked
// softmax over all keys first. Run it as: OMP_WAIT_POLICY=passive zerolab_bench
// --benchmark_filter=sparse_attention
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "core/model/block_layouts.h"
#include "tests/bench/attention_problem.h"
#include "tests/bench/masked_reference.h"

namespace {

using namespace zl;

struct Seconds {
  double forward, backward;
  double both() const { return forward + backward; }
  double of_forward() const { return forward; }
  double of_backward() const { return backward; }
};

Seconds mean_of(const std::vector<Seconds>& steps) {
  Seconds mean{};
  for (const Seconds& each : steps) mean.forward += each.forward, mean.backward += each.backward;
  const auto count = static_cast<double>(steps.size());
  return {mean.forward / count, mean.backward / count};
}

void read_once(const TensorView& of) {
  constexpr std::int64_t kApart = 4;  // so that no sum waits for the one before
  cpu::Vector<float> sums[kApart] = {};
  const auto* from = reinterpret_cast<const float*>(of.data);
  const std::int64_t vectors = of.bytes() / cpu::kVectorBytes;
  for (std::int64_t i = 0; i + kApart <= vectors; i += kApart) {
    for (std::int64_t k = 0; k < kApart; ++k) {
      sums[k] += cpu::load_vector(from + (i + k) * cpu::kLanes<float>);
    }
  }
  benchmark::DoNotOptimize(sums);
}

void write_once(const TensorView& to) {
  alignas(cpu::kVectorBytes) const std::byte zeros[cpu::kVectorBytes] = {};
  for (std::int64_t at = 0; at + cpu::kVectorBytes <= to.bytes(); at += cpu::kVectorBytes) {
    cpu::stream_vector(to.data + at, zeros);
  }
  cpu::end_of_streams();
}

struct SparseProblem : zl::bench::AttentionProblem {
  BlockLayout layout;
  BlockTable table;

  SparseProblem(const AttentionShape& s, const SparseAttentionConfig& config, DType type)
      : AttentionProblem(s, type),
        layout(block_layouts(config, {.sequence = s.sequence, .heads = s.heads}).front()),
        table(block_table(std::span(&layout, 1), true)) {}

  AttentionMask mask() {
    const TensorView words{reinterpret_cast<std::byte*>(table.words.data()), DType::i32,
                           Shape{static_cast<std::int64_t>(table.words.size())}};
    return AttentionMask::sparse(words, table, shape.heads, true);
  }
  // Blocks that exist, of those of the causal triangle.
  double density() const {
    const auto blocks = static_cast<double>(layout.rows.size());
    return static_cast<double>(layout.active()) / (blocks * (blocks + 1) / 2);
  }
  Seconds step(const AttentionMask& seen) const {
    const double begin = zl::bench::seconds(1);
    cpu::execute(forward(seen), {1});
    const double middle = zl::bench::seconds(1);
    cpu::execute(backward(seen), {1});
    return {middle - begin, zl::bench::seconds(1) - middle};
  }
  // Seconds of a step that reads and writes once what each direction has to, and computes nothing.
  double traffic() const {
    const double begin = zl::bench::seconds(1);
    read_once(qkv.view), write_once(out.view);
    read_once(qkv.view), read_once(dout.view), write_once(dqkv.view);
    return zl::bench::seconds(1) - begin;
  }
  // Whether a step gives what it should, over what was there before.
  bool is_right() {
    constexpr std::int64_t kRows = 9;
    const double most = qkv.view.dtype == DType::f32 ? 1e-4 : 3e-2;
    for (const zl::bench::Storage* each : {&out, &lse, &dqkv}) {
      cpu::execute(Fill{each->view, std::numeric_limits<double>::quiet_NaN()}, {1});
    }
    step(mask());
    return zl::bench::MaskedReference(backward(mask()), layout).worst(kRows) < most;
  }
};

using Part = double (Seconds::*)() const;

std::vector<double> all_of(const std::vector<Seconds>& steps, Part part) {
  std::vector<double> seconds;
  for (const Seconds& each : steps) seconds.push_back((each.*part)());
  return seconds;
}
double median_of(const std::vector<Seconds>& steps, Part part) {
  return zl::median(all_of(steps, part));
}
double least_of(const std::vector<Seconds>& steps) {
  return std::ranges::min(all_of(steps, &Seconds::both));
}

void add(const char* name, SparseAttentionConfig config, std::int64_t block, std::int64_t sequence,
         DType type) {
  config.block = block;
  config.bidirectional = false;
  const std::string full = std::string("sparse_attention/") + name + "/" + name_of(type) +
                           "/block:" + std::to_string(block) + "/t:" + std::to_string(sequence);
  const auto run = [=](benchmark::State& state) {
    SparseProblem p({1, sequence, 4, 4, 64}, config, type);
    if (!p.is_right()) return state.SkipWithError("wrong attention");
    const auto as_much = static_cast<std::size_t>(std::lround(1 / p.density()));
    std::vector<Seconds> sparse, least_sparse, dense, first_sparse, first_dense;
    std::vector<double> traffic;
    for (auto _ : state) {
      first_sparse.push_back(p.step(p.mask()));
      std::vector<Seconds> steps;  // as in a stack of layers
      while (steps.size() < as_much) steps.push_back(p.step(p.mask()));
      sparse.push_back(mean_of(steps));
      least_sparse.push_back(*std::ranges::min_element(steps, {}, &Seconds::both));
      first_dense.push_back(p.step({}));
      dense.push_back(p.step({}));
      traffic.push_back(p.traffic());
      state.SetIterationTime(sparse.back().both());
    }
    const auto share = [&](Part part) {
      return zl::bench::median_ratio(all_of(sparse, part), all_of(dense, part));
    };
    const double first = zl::bench::median_ratio(all_of(first_sparse, &Seconds::both),
                                                 all_of(first_dense, &Seconds::both));
    state.counters["density"] = p.density();
    state.counters["speedup"] = 1 / share(&Seconds::both);
    state.counters["over_density"] = share(&Seconds::both) / p.density();
    state.counters["first_over_density"] = first / p.density();
    state.counters["least_over_density"] = least_of(least_sparse) / least_of(dense) / p.density();
    state.counters["traffic_over_density"] =
        zl::bench::median_ratio(traffic, all_of(dense, &Seconds::both)) / p.density();
    state.counters["forward_over_density"] = share(&Seconds::of_forward) / p.density();
    state.counters["backward_over_density"] = share(&Seconds::of_backward) / p.density();
  };
  benchmark::RegisterBenchmark(full.c_str(), run)
      ->UseManualTime()
      ->Iterations(std::max<std::int64_t>(5, 49152 / sequence))
      ->Unit(benchmark::kMillisecond);
}

// A layout of blocks of 16 beside dense attention to a tenth of the sequence.
void add_ten_times(const char* name, SparseAttentionConfig config, DType type) {
  constexpr std::int64_t kDense = 4096;
  config.bidirectional = false;
  const std::string full =
      std::string("sparse_attention_ten_times/") + name + "/" + name_of(type) + "/t:40960";
  const auto run = [=](benchmark::State& state) {
    SparseProblem p({1, 10 * kDense, 4, 4, 64}, config, type);
    const SparseProblem tenth({1, kDense, 4, 4, 64}, config, type);
    if (!p.is_right()) return state.SkipWithError("wrong attention");
    std::vector<Seconds> sparse, dense;
    for (auto _ : state) {
      sparse.push_back(p.step(p.mask()));
      dense.push_back(tenth.step({}));
      state.SetIterationTime(sparse.back().both());
    }
    const double of_tenth = median_of(dense, &Seconds::both);
    state.counters["dense_tenth_ms"] = 1e3 * of_tenth;
    state.counters["of_dense_tenth"] = median_of(sparse, &Seconds::both) / of_tenth;
  };
  benchmark::RegisterBenchmark(full.c_str(), run)
      ->UseManualTime()
      ->Iterations(8)
      ->Unit(benchmark::kMillisecond);
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
        add("fixed", fixed, block, sequence, type);
        add("bslongformer", longformer, block, sequence, type);
        add("bigbird", bigbird, block, sequence, type);
        add("local", local, block, sequence, type);
      }
    }
    add_ten_times("bslongformer", longformer, type);
    add_ten_times("bigbird", bigbird, type);
    add_ten_times("local", local, type);
  }
  return 0;
}();

}  // namespace
