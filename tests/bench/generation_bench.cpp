// Tokens a second after a long text, and the bytes of its cache, of a small model with the
// proportions of Mistral's and random weights: with a sliding window, whose layers keep a ring of
// what they see, and without, where every layer keeps and sees all.
// OMP_WAIT_POLICY=passive zerolab_bench --benchmark_filter=decode
#include <cmath>
#include <string>

#include "backends/cpu/world.h"
#include "core/inference/generator.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;

ModelConfig small_mistral(std::int64_t window) {
  ModelConfig model;
  model.name = "small-mistral";
  model.family = "llama";
  model.layers = 8, model.hidden = 512, model.ffn = 1792;
  model.heads = 8, model.kv_heads = 2, model.head_size = 64;
  model.vocab = 8192, model.max_sequence = 32768;
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.tied_embeddings = model.qkv_bias = model.out_bias = model.mlp_bias = false;
  model.sliding_window = window;
  return model;
}

std::int32_t token_at(std::int64_t position, const ModelConfig& model) {
  return static_cast<std::int32_t>(position * 7919 % model.vocab);
}

// Whether a text that came in two pieces has the logits of one that came whole.
bool is_right(RankContext& context, const ModelConfig& model, std::int64_t length) {
  Generator generator(context, model, {.capacity = length}, 1);
  std::vector<std::int32_t> text;
  for (std::int64_t i = 0; i < length; ++i) text.push_back(token_at(i, model));
  const Generator::Extension whole{0, text};
  const std::vector<float> wanted = generator.extend({&whole, 1}).front();
  generator.clear(0);
  const std::span all(text);
  const Generator::Extension first{0, all.first(text.size() - 1)}, last{0, all.last(1)};
  generator.extend({&first, 1});
  const std::vector<float> got = generator.extend({&last, 1}).front();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - wanted[i]) < 1e-4f)) return false;
  }
  return true;
}

void decode(benchmark::State& state, std::int64_t window, std::int64_t length, int threads) {
  constexpr std::int64_t kRoom = 512;  // tokens that may follow
  const ModelConfig model = small_mistral(window);
  cpu::make_world({.ranks = 1, .threads_per_rank = threads})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator, {.record_trace = false});
    if (!is_right(context, model, 700)) return state.SkipWithError("wrong logits");
    Generator generator(context, model, {.capacity = length + kRoom}, 1);
    std::vector<std::int32_t> text;
    for (std::int64_t i = 0; i < length; ++i) text.push_back(token_at(i, model));
    const Generator::Extension prompt{0, text};
    generator.extend({&prompt, 1});
    std::vector<double> seconds;
    for (auto _ : state) {
      if (generator.length(0) == generator.capacity()) {
        generator.clear(0);
        generator.extend({&prompt, 1});
      }
      const std::int32_t token = token_at(generator.length(0), model);
      const Generator::Extension next{0, {&token, 1}};
      const double begin = zl::bench::wall_seconds();
      generator.extend({&next, 1});
      seconds.push_back(zl::bench::wall_seconds() - begin);
      state.SetIterationTime(seconds.back());
    }
    state.counters["tokens_per_second"] = 1 / zl::median(seconds);
    state.counters["cache_MiB"] =
        static_cast<double>(KeyValueCache::bytes(model, length + kRoom, DType::f32)) / (1 << 20);
  });
}

const int registered_decodes = [] {
  for (const std::int64_t length : {1024, 4096}) {
    for (const std::int64_t window : {512, 0}) {
      const std::string name =
          "decode/window:" + std::to_string(window) + "/t:" + std::to_string(length) + "/threads:2";
      benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { decode(state, window, length, 2); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(400);
    }
  }
  return 0;
}();

}  // namespace
