// How much of the files' transfers is hidden: the share of the time in which a file is read or
// written and the rank computes or its host updates weights. One rank with one thread beside the
// threads of the file tier, so that two cores hold both; ZEROLAB_BENCH_FOLDER chooses the disk
// (default: the working folder). Transfers hide behind what runs long enough: each case trains with
// short, long and several micro-batches. Weights are read twice a micro-batch and written once a
// step, state is read and written once a step.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/world.h"
#include "core/data/token_source.h"
#include "core/train/rank_program.h"
#include "tests/engine/intervals.h"

namespace {

using namespace zl;

constexpr int kSteps = 5, kFirst = 3, kLast = 4;  // of the steps that count: nothing hides the last

ModelConfig model() {
  ModelConfig model;
  model.name = "gpt2";
  model.layers = 6;
  model.hidden = 512;
  model.heads = 8;
  model.vocab = 256;
  model.max_sequence = 256;
  model.complete();
  return model;
}

Strategy base(int stage) {
  Strategy s;
  s.zero.stage = stage;
  s.zero.overlap_comm = true;
  s.zero.param_persistence_threshold = 0;
  s.zero.max_reuse_distance = 1'000'000;  // the last block stays for its backward, others do not
  const char* folder = std::getenv("ZEROLAB_BENCH_FOLDER");
  s.offload.nvme_path = folder != nullptr ? folder : ".";
  s.offload.pipeline_read = s.offload.pipeline_write = true;
  s.offload.sub_group_size = 2'000'000;
  return s;
}

// ZeRO-Infinity: the weights in files, read before each forward and backward of a block.
Strategy weights_in_files() {
  Strategy s = base(3);
  s.offload.optimizer = Tier::cpu;
  s.offload.parameters = Tier::nvme;
  s.offload.max_in_cpu = 0;
  return s;
}

// The optimizer's state in files: moved while the host updates sub-groups...
Strategy state_in_files() {
  Strategy s = base(2);
  s.offload.optimizer = Tier::nvme;
  return s;
}

// ... or, one step late, behind the next step's forward and backward.
Strategy delayed_state_in_files() {
  Strategy s = state_in_files();
  s.offload.delayed_update_after = 1;
  return s;
}

RankOutcome train(const Strategy& strategy) {
  ProgramOptions options;
  options.steps = kSteps;
  options.sequence_length = model().max_sequence;
  options.keep_trace = true;
  options.make_storage = [](const Strategy& s, int rank) {
    return cpu::make_file_storage(s.offload.nvme_path, rank, s.offload.aio);
  };
  WorldOptions world;
  world.ranks = world.threads_per_rank = 1;
  const TokenSource data = TokenSource::synthetic(model().vocab, 7);
  RankOutcome outcome;
  cpu::make_world(world)->run(
      [&](RankHandle handle) { outcome = run_rank(handle, model(), strategy, data, options); });
  return outcome;
}

struct Share {
  double all = 0, hidden = 0;  // seconds

  void add(const Trace& trace, StreamId files) {
    const auto transfers = test::busy(trace, {files}, kFirst, kLast);
    // Of the next step too: what is delayed hides behind it.
    const auto work = test::busy(trace, {StreamId::compute, StreamId::host}, kFirst, kSteps);
    all += test::total_seconds(transfers);
    hidden += test::common_seconds(transfers, work);
  }
};

void hidden_transfers(benchmark::State& state, Strategy (*make)()) {
  Strategy strategy = make();
  strategy.micro_batch = state.range(0);
  strategy.gradient_accumulation = state.range(1);
  Share read, written;
  double seconds = 0;
  for (auto _ : state) {
    const RankOutcome outcome = train(strategy);
    read.add(outcome.trace, StreamId::file_in);
    written.add(outcome.trace, StreamId::file_out);
    for (int step = kFirst; step <= kLast; ++step) {
      seconds += outcome.result.step_seconds[static_cast<std::size_t>(step - 1)];
    }
  }
  const double steps = (kLast - kFirst + 1) * static_cast<double>(state.iterations());
  state.counters["step_s"] = seconds / steps;
  state.counters["read_s"] = read.all / steps;
  state.counters["written_s"] = written.all / steps;
  state.counters["read_hidden"] = read.hidden / read.all;
  state.counters["written_hidden"] = written.hidden / written.all;
  state.counters["hidden"] = (read.hidden + written.hidden) / (read.all + written.all);
}

void settings(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"sequences", "micro_batches"})->Iterations(3)->Unit(benchmark::kSecond);
  bench->Args({1, 1})->Args({8, 1})->Args({4, 4});
}
BENCHMARK_CAPTURE(hidden_transfers, weights, weights_in_files)->Apply(settings);
BENCHMARK_CAPTURE(hidden_transfers, state, state_in_files)->Apply(settings);
BENCHMARK_CAPTURE(hidden_transfers, delayed_state, delayed_state_in_files)->Apply(settings);

}  // namespace
