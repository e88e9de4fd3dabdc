// Recording and pricing GPT-3 175B under ZeRO-3 on 1,024 ranks. Goals: recording one step under 5
// ms, pricing it under 1 ms (more than 50 M events a second). A step of a million micro-batches of
// a small model: under 10 ms. A trillion parameters on 3,072 ranks (tensor 8, pipeline 64, data 6)
// with 512 micro-batches, recorded and priced: under 1 s.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>

#include "core/base/files.h"
#include "core/data/token_source.h"
#include "core/pipeline/pipeline_rounds.h"
#include "core/train/rank_program.h"
#include "simulator/rank_classes.h"
#include "simulator/timeline.h"
#include "simulator/world.h"

namespace {

using namespace zl;

constexpr int kRanks = 1024;

ModelConfig gpt(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                std::int64_t vocab) {
  ModelConfig model;
  model.name = name;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.vocab = vocab;
  model.max_sequence = 2048;
  model.complete();
  return model;
}

ModelConfig gpt3() { return gpt("gpt3-175b", 96, 12288, 96, 50257); }
// Narayanan et al. 2021, table 1.
ModelConfig trillion() { return gpt("megatron-1t", 128, 25600, 160, 51200); }

Strategy zero_3() {
  Strategy strategy;
  strategy.zero.stage = 3;
  strategy.zero.overlap_comm = true;
  strategy.precision.compute_dtype = strategy.precision.communication_dtype = DType::bf16;
  strategy.recompute.mode = RecomputeMode::full;
  return strategy;
}

RankOutcome record(const ModelConfig& model, const Strategy& strategy, int ranks) {
  sim::SimOptions sim;
  sim.answers.loss = std::log(static_cast<double>(model.vocab));
  const auto world = sim::make_world({.ranks = ranks}, sim);
  const TokenSource data = TokenSource::synthetic(model.vocab, 1);
  ProgramOptions options;
  options.sequence_length = model.max_sequence;
  options.recorded_rounds = kSteadyRounds;
  RankOutcome outcome;
  world->run(
      [&](RankHandle handle) { outcome = run_rank(handle, model, strategy, data, options); });
  return outcome;
}

void record_million_micro_batches(benchmark::State& state) {
  ModelConfig model;
  model.name = "gpt2-tiny";
  model.layers = 2;
  model.hidden = 64;
  model.heads = 2;
  model.vocab = 256;
  model.max_sequence = 64;
  model.complete();
  Strategy strategy = zero_3();
  strategy.gradient_accumulation = 1'000'000;
  const RankOutcome first = record(model, strategy, 4);
  if (first.result.op_count < 100'000'000 || first.trace.events().size() > 100'000) {
    state.SkipWithError("not a million micro-batches, or not recorded once");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(record(model, strategy, 4));
  state.counters["events"] = static_cast<double>(first.trace.events().size());
}
BENCHMARK(record_million_micro_batches)->Unit(benchmark::kMillisecond);

// 1024xh100 of the catalogue.
sim::ClusterSpec cluster() {
  const std::string file = std::string(ZL_SOURCE_DIR) + "/scenarios/catalog/clusters/h100.json";
  return sim::with_devices(sim::parse_cluster(read_file(file), file), kRanks);
}

void record_gpt3(benchmark::State& state) {
  const ModelConfig model = gpt3();
  const RankOutcome first = record(model, zero_3(), kRanks),
                    second = record(model, zero_3(), kRanks);
  if (first.trace.sequence_hash() != second.trace.sequence_hash() ||
      first.trace.op_count() < 1000) {
    state.SkipWithError("two recordings differ, or recorded too little");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(record(model, zero_3(), kRanks));
  state.counters["events"] = static_cast<double>(first.trace.events().size());
  state.counters["ops"] = static_cast<double>(first.trace.op_count());
}
BENCHMARK(record_gpt3)->Unit(benchmark::kMillisecond);

void price_gpt3(benchmark::State& state) {
  const RankOutcome recorded = record(gpt3(), zero_3(), kRanks);
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

Strategy tensor_8_pipeline_64() {
  Strategy strategy = zero_3();
  strategy.zero.stage = 1;
  strategy.tensor = {.ranks = 8, .sequence_parallel = true};
  strategy.pipeline = {.ranks = 64};
  strategy.gradient_accumulation = 512;
  return strategy;
}

struct Stages {
  std::vector<sim::RankClass> classes;
  std::vector<Trace> traces;
};

Stages record_stages(const ModelConfig& model, const Strategy& strategy, int ranks) {
  Stages stages{sim::stages_of(mesh_of(strategy, ranks)), {}};
  sim::SimOptions sim;
  sim.mesh = mesh_of(strategy, ranks);
  sim.answers.loss = std::log(static_cast<double>(model.vocab));
  for (const sim::RankClass& each : stages.classes) sim.recorded.push_back(each.representative());
  const TokenSource data = TokenSource::synthetic(model.vocab, 1);
  ProgramOptions options;
  options.sequence_length = model.max_sequence;
  options.pipeline = std::make_shared<PipelinePlan>(
      fold(*plan_pipeline(strategy.pipeline, strategy.gradient_accumulation), kSteadyPipelineRounds,
           false));
  sim::make_world({.ranks = ranks}, sim)->run([&](RankHandle handle) {
    stages.traces.push_back(run_rank(handle, model, strategy, data, options).trace);
  });
  return stages;
}

void record_and_price_trillion(benchmark::State& state) {
  const sim::ClusterSpec machines = sim::with_devices(cluster(), 3072);
  double seconds = 0;
  for (auto _ : state) {
    const Stages stages = record_stages(trillion(), tensor_8_pipeline_64(), 3072);
    std::vector<sim::RankTrace> traces;
    for (std::size_t i = 0; i < stages.traces.size(); ++i) {
      traces.push_back({&stages.traces[i], stages.classes[i].ranks});
    }
    seconds = static_cast<double>(sim::price(traces, machines)[0].steps.back().duration) * 1e-12;
  }
  // Six floating-point operations a parameter and token, of 3,072 sequences, at 989 TFLOP/s.
  if (seconds < 6 * 1e12 * 3072 * 2048 / (3072 * 989e12)) {
    state.SkipWithError("faster than the devices can be");
    return;
  }
  state.counters["step_seconds"] = seconds;
}
BENCHMARK(record_and_price_trillion)->Unit(benchmark::kMillisecond);

}  // namespace
