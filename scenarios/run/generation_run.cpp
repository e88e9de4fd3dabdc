#include "scenarios/run/generation_run.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/model/sparse_attention.h"
#include "core/trace/trace.h"
#include "scenarios/run/simulate.h"
#include "simulator/timeline.h"
#include "simulator/world.h"

namespace zl {
namespace {

constexpr double kSecondsPerPicosecond = 1e-12;

// Room for the longest prompt and what follows it.
GeneratorOptions options_of(const GenerationRequest& request) {
  return {.dtype = request.dtype,
          .sequences = static_cast<int>(request.prompts.size()),
          .blocks = block_window(request.sparse),
          .capacity = longest_prompt(request) + request.options.max_tokens};
}

void check_prompts(const GenerationRequest& request) {
  const std::int64_t most = request.model.scaled_positions();
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    const auto tokens = static_cast<std::int64_t>(request.prompts[i].size());
    if (tokens <= most) continue;
    const std::string number = request.prompts.size() == 1 ? "" : " " + std::to_string(i + 1);
    throw Error(ErrorCode::invalid, "prompt" + number + ": its " + std::to_string(tokens) +
                                        " tokens are more than the " + std::to_string(most) +
                                        " positions (max_sequence) that " + request.model.name +
                                        " is made for; shorten it, or take a model of more");
  }
}

// What one rank does, on any device.
GenerationRun run_rank(RankHandle handle, const GenerationRequest& request,
                       const WeightSource* weights, Trace* trace) {
  RankContext context(
      handle.device, handle.communicator,
      {.record_trace = trace != nullptr, .mesh = Mesh{.tensor = handle.communicator.size()}});
  Generator generator(context, request.model, options_of(request),
                      InitialWeights(request.seed, weights));
  GenerationRun run;
  run.generated = generate(generator, request.prompts, request.options);
  run.peak.tag = context.ledger().at_peak(MemorySpace::device);
  run.reserved = context.reserved(MemorySpace::device);
  run.weight_bytes = generator.parameters() * static_cast<std::int64_t>(size_of(request.dtype));
  run.cache_bytes_per_token = KeyValueCache::bytes_per_token(generator.rank_model(), request.dtype);
  if (trace != nullptr) *trace = std::move(context.trace());
  return run;
}

}  // namespace

std::int64_t longest_prompt(const GenerationRequest& request) {
  std::size_t longest = 0;
  for (const auto& prompt : request.prompts) longest = std::max(longest, prompt.size());
  return static_cast<std::int64_t>(longest);
}

GenerationRun run_generation(World& world, const GenerationRequest& request) {
  check_prompts(request);
  std::atomic<int> last_step = std::numeric_limits<int>::max();
  GenerationRequest first = request;
  first.options.last_step = &last_step;
  GenerationRequest others = first;  // one rank speaks, and hears that it is to end
  others.options.on_token = nullptr;
  others.options.cancel = nullptr;
  GenerationRun run;
  world.run([&](RankHandle handle) {
    const bool speaks = handle.communicator.rank() == 0;
    GenerationRun made = run_rank(handle, speaks ? first : others, request.weights.get(), nullptr);
    if (speaks) run = std::move(made);
  });
  const auto measured = [](double seconds) {
    return GenerationRun::Time{seconds, seconds, seconds};
  };
  run.first_token = measured(run.generated.prefill_seconds);
  run.decode = measured(run.generated.decode_seconds);
  return run;
}

GenerationRun predict_generation(const GenerationRequest& request,
                                 const sim::ClusterSpec& cluster) {
  if (request.model.position == PositionKind::learned) check_prompts(request);
  GenerationRequest recorded = request;
  recorded.options.stop.clear();
  recorded.options.on_token = nullptr;
  recorded.options.sampling = {.temperature = 0};
  GenerationRun run;
  Trace trace;
  sim::SimOptions group;
  group.mesh = Mesh{.tensor = request.ranks};
  sim::make_world({.ranks = request.ranks, .threads_per_rank = 1}, group)
      ->run([&](RankHandle handle) { run = run_rank(handle, recorded, nullptr, &trace); });
  const sim::Timeline timeline = sim::price(trace, cluster);
  run.generated.outputs.clear();
  for (const sim::StepPrice& step : timeline.steps) {
    if (step.step == sim::StepPrice::kSetup) continue;
    GenerationRun::Time& time = step.step == 1 ? run.first_token : run.decode;
    time.seconds += static_cast<double>(step.duration) * kSecondsPerPicosecond;
    time.low += static_cast<double>(step.low()) * kSecondsPerPicosecond;
    time.high += static_cast<double>(step.high()) * kSecondsPerPicosecond;
  }
  run.generated.prefill_seconds = run.first_token.seconds;
  run.generated.decode_seconds = run.decode.seconds;
  run.priced_from = price_basis(cluster, request.dtype);
  return run;
}

}  // namespace zl
