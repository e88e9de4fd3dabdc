// Collectives among thread ranks; each is checked before it is timed. Every rank loops and rank 0's
// time counts. Compare with collective_mpi_baseline (the same sizes under mpirun).
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "backends/cpu/world.h"

namespace {

using namespace zl;

enum class Pattern { all_reduce, reduce_scatter, all_gather, scatter_and_gather };

struct Exchange {
  Exchange(RankHandle handle, std::int64_t count)
      : rank(handle.communicator.rank()),
        ranks(handle.communicator.size()),
        communicator(handle.communicator),
        full(static_cast<std::size_t>(count), static_cast<float>(rank + 1)),
        whole{reinterpret_cast<std::byte*>(full.data()), DType::f32, Shape{count}},
        own(whole.flat(rank * (count / ranks), count / ranks)) {}

  void run(Pattern pattern) {
    if (pattern == Pattern::all_reduce) collective(CollectiveKind::all_reduce, whole, whole);
    if (pattern == Pattern::reduce_scatter || pattern == Pattern::scatter_and_gather) {
      collective(CollectiveKind::reduce_scatter, whole, own);
    }
    if (pattern == Pattern::all_gather || pattern == Pattern::scatter_and_gather) {
      collective(CollectiveKind::all_gather, own, whole);
    }
  }
  // After the first run: rank r came with r + 1 everywhere.
  bool right(Pattern pattern) const {
    const bool reduces = pattern != Pattern::all_gather;
    const bool gathers = pattern != Pattern::reduce_scatter;
    for (std::size_t i = 0; i < full.size(); ++i) {
      const int owner = static_cast<int>(i / (full.size() / static_cast<std::size_t>(ranks)));
      if (!gathers && owner != rank) continue;
      if (full[i] != static_cast<float>(reduces ? ranks * (ranks + 1) / 2 : owner + 1))
        return false;
    }
    return true;
  }

  int rank, ranks;
  Communicator& communicator;
  std::vector<float> full;
  TensorView whole, own;

 private:
  void collective(CollectiveKind kind, const TensorView& source, const TensorView& destination) {
    const Segment segment{source, destination};
    communicator.run(StreamId::compute, {kind, ReduceOp::sum, Purpose::data, {&segment, 1}},
                     nullptr);
  }
};

void bm_collective(benchmark::State& state, Pattern pattern) {
  const std::int64_t bytes = state.range(0);
  const int ranks = static_cast<int>(state.range(1));
  constexpr int kWarmUp = 3, kRepeats = 9;
  const auto world = cpu::make_world({.ranks = ranks, .threads_per_rank = 1});
  for (auto _ : state) {
    double seconds = 0;
    world->run([&](RankHandle handle) {
      Exchange exchange(handle, bytes / 4);
      exchange.run(pattern);
      if (!exchange.right(pattern)) throw Error(ErrorCode::failed, "the collective is wrong");
      for (int i = 0; i < kWarmUp; ++i) exchange.run(pattern);
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRepeats; ++i) exchange.run(pattern);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      if (exchange.rank == 0) seconds = time.count() / kRepeats;
    });
    state.SetIterationTime(seconds);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int ranks : {2, 4}) {
    for (const std::int64_t bytes : {1 << 10, 256 << 10, 4 << 20, 64 << 20}) {
      benchmark->Args({bytes, ranks});
    }
  }
  benchmark->ArgNames({"bytes", "ranks"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  benchmark->Repetitions(5)->ReportAggregatesOnly()->Iterations(1);
}

BENCHMARK_CAPTURE(bm_collective, all_reduce, Pattern::all_reduce)->Apply(sizes);
BENCHMARK_CAPTURE(bm_collective, reduce_scatter, Pattern::reduce_scatter)->Apply(sizes);
BENCHMARK_CAPTURE(bm_collective, all_gather, Pattern::all_gather)->Apply(sizes);
BENCHMARK_CAPTURE(bm_collective, reduce_scatter_all_gather, Pattern::scatter_and_gather)
    ->Apply(sizes);

}  // namespace
