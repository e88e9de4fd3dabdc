// Recording and pricing GPT-3 175B under ZeRO-3 on 1,024 ranks. Goals: recording one step under 5
// ms, pricing it under 1 ms (more than 50 M events a second).
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>

#include "core/base/files.h"
#include "core/data/token_source.h"
#include "core/train/rank_program.h"
#include "simulator/timeline.h"
#include "simulator/world.h"

namespace {

using namespace zl;

constexpr int kRanks = 1024;

ModelConfig gpt3() {
  ModelConfig model;
  model.name = "gpt3-175b";
  model.layers = 96;
  model.hidden = 12288;
  model.heads = 96;
  model.vocab = 50257;
  model.max_sequence = 2048;
  model.complete();
  return model;
}

Strategy zero_3() {
  Strategy strategy;
  strategy.zero.stage = 3;
  strategy.zero.overlap_comm = true;
  strategy.precision.compute_dtype = strategy.precision.communication_dtype = DType::bf16;
  strategy.recompute.mode = RecomputeMode::full;
  return strategy;
}

RankOutcome record(const ModelConfig& model, std::int64_t steps) {
  sim::SimOptions sim;
  sim.answers.loss = std::log(static_cast<double>(model.vocab));
  const auto world = sim::make_world({.ranks = kRanks}, sim);
  const TokenSource data = TokenSource::synthetic(model.vocab, 1);
  ProgramOptions options;
  options.steps = steps;
  options.sequence_length = model.max_sequence;
  RankOutcome outcome;
  world->run(
      [&](RankHandle handle) { outcome = run_rank(handle, model, zero_3(), data, options); });
  return outcome;
}

// 1024xh100 of the catalogue.
sim::ClusterSpec cluster() {
  const std::string file = std::string(ZL_SOURCE_DIR) + "/scenarios/catalog/clusters/h100.json";
  return sim::with_devices(sim::parse_cluster(read_file(file), file), kRanks);
}

void record_gpt3(benchmark::State& state) {
  const ModelConfig model = gpt3();
  const RankOutcome first = record(model, 1), second = record(model, 1);
  if (first.trace.sequence_hash() != second.trace.sequence_hash() ||
      first.trace.op_count() < 1000) {
    state.SkipWithError("two recordings differ, or recorded too little");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(record(model, 1));
  state.counters["events"] = static_cast<double>(first.trace.events().size());
  state.counters["ops"] = static_cast<double>(first.trace.op_count());
}
BENCHMARK(record_gpt3)->Unit(benchmark::kMillisecond);

void price_gpt3(benchmark::State& state) {
  const RankOutcome recorded = record(gpt3(), 1);
  const sim::ClusterSpec machines = cluster();
  const sim::Timeline timeline = sim::price(recorded.trace, machines);
  std::int64_t sum = 0;
  for (const sim::StepPrice& step : timeline.steps) sum += step.duration;
  if (sum != timeline.total || timeline.events.size() != recorded.trace.events().size()) {
    state.SkipWithError("steps do not add up to the total");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(sim::price(recorded.trace, machines));
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(recorded.trace.events().size()));
  state.counters["step_seconds"] = static_cast<double>(timeline.steps.back().duration) * 1e-12;
}
BENCHMARK(price_gpt3)->Unit(benchmark::kMillisecond);

}  // namespace
