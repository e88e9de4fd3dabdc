// `zerolab generate`: prompts continued by a model, as they come.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/model/sparse_attention.h"
#include "results/format.h"
#include "results/run_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/interrupt.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/readers.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/generation_run.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/speaker.h"

namespace zl::cli {
namespace {

struct GenerateOptions {
  std::string model, tokenizer, weights, cluster = "local", backend, precision, format = "table";
  std::vector<std::string> prompts;
  std::string prompt_file;
  std::int64_t prompt_tokens = 0, sequences = 1;  // of a prediction, without a text
  std::uint64_t seed = 1234;
  SamplingConfig sampling = {.temperature = 0};
  std::int64_t max_tokens = 0;  // 0: nobody said
  bool ignore_end = false;
  int ranks = 1;
};

Speaker speaker_of(const GenerateOptions& options) {
  ScenarioOverrides overrides;
  overrides.model = options.model;
  overrides.cluster = options.cluster;
  if (!options.weights.empty()) overrides.weights = options.weights;
  if (!options.tokenizer.empty()) overrides.tokenizer = options.tokenizer;
  if (!options.precision.empty()) overrides.precision = options.precision;
  return load_speaker(std::move(overrides));
}

double per_second(std::int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

std::string summary(const GenerationRun& run, const std::string& where, int ranks) {
  const Generated& made = run.generated;
  const std::string each = ranks == 1 ? "" : fmt::format(" ({} ranks; bytes of each)", ranks);
  return fmt::format(
      "{}{}: {} prompt tokens, first token after {}; {} tokens more at {:.1f} tokens/s; weights "
      "{}, cache {} a token, peak memory {}",
      where, each, made.prompt_tokens, readable(run.first_token.seconds, Unit::seconds),
      made.decoded_tokens, per_second(made.decoded_tokens, run.decode.seconds),
      readable(run.weight_bytes, Unit::bytes), readable(run.cache_bytes_per_token, Unit::bytes),
      readable(run.peak.total(), Unit::bytes));
}

Json time_json(const GenerationRun::Time& time) {
  return {{"seconds", time.seconds}, {"low", time.low}, {"high", time.high}};
}

Json run_to_json(const GenerationRun& run, const Speaker& speaker, const std::string& backend,
                 int ranks, DType dtype) {
  const Generated& made = run.generated;
  return {{"model", speaker.scenario.model.name},
          {"cluster", speaker.scenario.cluster},
          {"backend", backend},
          {"ranks", ranks},
          {"precision", name_of(dtype)},
          {"prompt_tokens", made.prompt_tokens},
          {"output_tokens", made.output_tokens},
          {"first_token", time_json(run.first_token)},
          {"decode", time_json(run.decode)},
          {"decoded_tokens", made.decoded_tokens},
          {"decode_tokens_per_second", per_second(made.decoded_tokens, run.decode.seconds)},
          {"weight_bytes", run.weight_bytes},
          {"cache_bytes_per_token", run.cache_bytes_per_token},
          {"peak_device_bytes", run.peak.total()},
          {"kv_cache_bytes", run.peak.tag[static_cast<std::size_t>(MemoryTag::kv_cache)]},
          {"reserved_bytes", run.reserved},
          {"priced_from", run.priced_from.empty() ? Json() : Json(run.priced_from)}};
}

std::vector<std::string> prompts_of(const GenerateOptions& options) {
  std::vector<std::string> prompts = options.prompts;
  if (!options.prompt_file.empty()) prompts.push_back(read_file(options.prompt_file));
  return prompts;
}

GenerationRequest request_of(const GenerateOptions& options, const Speaker& speaker,
                             const std::vector<std::string>& prompts) {
  GenerationRequest request{.model = speaker.scenario.model, .seed = options.seed};
  request.options.sampling = options.sampling;
  request.ranks = options.ranks;
  request.dtype = speaker.dtype();
  request.sparse = speaker.sparse;
  request.options.sampling.seed = options.seed;
  if (!prompts.empty()) {
    for (const std::string& prompt : prompts) {
      request.prompts.push_back(encode_prompt(speaker, prompt));
    }
    if (!options.ignore_end) request.options.stop = ends_of(speaker);
  } else {
    request.prompts.assign(
        static_cast<std::size_t>(options.sequences),
        std::vector<std::int32_t>(static_cast<std::size_t>(options.prompt_tokens), 0));
  }
  return request;
}

void say(const GenerateOptions& options, const Speaker& speaker, const GenerationRequest& request,
         const GenerationRun& run, const std::string& backend,
         const std::vector<std::string>& texts) {
  if (parse_format(options.format) != Format::json) {
    return log_info(summary(run, backend, request.ranks));
  }
  Json object = run_to_json(run, speaker, backend, request.ranks, request.dtype);
  if (!texts.empty()) object["texts"] = texts;
  if (backend != "sim") object["outputs"] = run.generated.outputs;
  print(pretty(object));
}

// Text grows by a token at a time, for which most layouts have no rows.
void tell_of_layout(const SparseAttentionConfig& sparse, const std::string& model) {
  if (!sparse.is_sparse()) return;
  if (block_window(sparse).block > 0) {
    return log_info(model + ": attends to the blocks that it was trained with, " +
                    name_of(sparse.mode));
  }
  log_warning(model + ": trained with sparse_attention.mode \"" + name_of(sparse.mode) +
              "\"; generation has no such layout and attends to all tokens before, which the "
              "model did not learn to: expect a text that is worse than its loss");
}

// Where nobody says how much is to follow, what there is room for, as in transformers.
void choose_length(const GenerateOptions& options, GenerationRequest& request) {
  std::int64_t& most = request.options.max_tokens;
  if (options.max_tokens > 0) most = options.max_tokens;
  const std::int64_t positions = request.model.scaled_positions();
  const std::int64_t room = positions - longest_prompt(request);
  if (options.max_tokens > 0 || room >= most || room < 1) return;
  most = room;
  log_info(
      fmt::format("outputs end after {} tokens, at the {} positions of {}; --max-tokens says "
                  "how many else",
                  room, positions, request.model.name));
}

// Learned positions end, and Generator refuses; rotary ones go on, to no good.
void tell_of_length(const GenerationRequest& request) {
  const std::int64_t prompt = longest_prompt(request), more = request.options.max_tokens;
  const ModelConfig& model = request.model;
  const std::int64_t positions = model.scaled_positions();
  if (model.position == PositionKind::learned || prompt + more <= positions) return;
  log_warning(fmt::format(
      "prompt ({} tokens) and output (--max-tokens {}) may be longer than the {} positions "
      "that {} is made for: rotary positions go on, but the model has not seen them",
      prompt, more, positions, model.name));
}

// Of a prediction for this machine.
void print_basis(const GenerationRun& run, const GenerationRequest& request) {
  RunResult basis;
  basis.ranks = request.ranks;
  basis.precision = name_of(request.dtype);
  basis.priced_from = run.priced_from;
  if (const std::string line = basis_line({&basis, 1}); !line.empty()) print(line + "\n");
}

int predict(const GenerateOptions& options, const Speaker& speaker,
            const GenerationRequest& request) {
  sim::ClusterSpec cluster = scenario_hardware(speaker.scenario);
  if (cluster.compute_is_host) {  // as many ranks as there are to be
    cluster = sim::with_devices(std::move(cluster), request.ranks);
  } else if (request.ranks > cluster.devices) {
    throw Error(ErrorCode::usage, "--ranks: " + std::to_string(request.ranks) +
                                      " are more than the " + std::to_string(cluster.devices) +
                                      " devices of --cluster " + speaker.scenario.cluster);
  }
  const GenerationRun run = predict_generation(request, cluster);
  if (parse_format(options.format) == Format::json) {
    say(options, speaker, request, run, "sim", {});
  } else {
    const std::string where = speaker.scenario.model.name + " on " + speaker.scenario.cluster;
    print(summary(run, where, request.ranks) + "\n");
    if (cluster.compute_is_host) print_basis(run, request);
  }
  return 0;
}

int generate(const GenerateOptions& options) {
  const std::vector<std::string> prompts = prompts_of(options);
  const Speaker speaker = speaker_of(options);
  const bool predicted =
      options.backend == "sim" || (options.backend.empty() && options.cluster != "local");
  if (prompts.empty() && (!predicted || options.prompt_tokens == 0)) {
    throw Error(ErrorCode::usage, predicted
                                      ? "--prompt-tokens: say how long the prompt is, or give "
                                        "a --prompt"
                                      : "--prompt: give the text to go on from");
  }
  const auto weights = predicted ? nullptr : open_weights(speaker);  // before its words
  GenerationRequest request = request_of(options, speaker, prompts);
  request.options.sampling.check();
  choose_length(options, request);
  tell_of_layout(request.sparse, options.model);
  tell_of_length(request);
  if (predicted) return predict(options, speaker, request);
  request.weights = weights;
  const Runner runner;
  const std::string backend = options.backend.empty() ? "cpu" : options.backend;
  const auto world = runner.backends().make(backend, {.ranks = options.ranks});
  const bool is_text = parse_format(options.format) != Format::json;
  Readers readers(*speaker.tokenizer, prompts, is_text);
  request.options.on_token = [&](int sequence, std::int32_t token) {
    readers.take(sequence, token);
  };
  request.options.cancel = &stop_on_interrupt();
  const GenerationRun run = run_generation(*world, request);
  const std::vector<std::string> texts = readers.finish(is_text);
  say(options, speaker, request, run, backend, texts);
  return request.options.cancel->load() ? static_cast<int>(ErrorCode::interrupted) : 0;
}

void add_sampling(CLI::App& sub, SamplingConfig& sampling) {
  sub.add_option("--temperature", sampling.temperature,
                 "0 (the default) takes the most likely token; above, tokens are drawn");
  sub.add_option("--top-k", sampling.top_k, "Of the most likely tokens only; 0: all");
  sub.add_option("--top-p", sampling.top_p,
                 "Of the most likely that have this probability together");
  sub.add_option("--min-p", sampling.min_p,
                 "Of those with this share of the likeliest's probability");
  sub.add_option("--repetition-penalty", sampling.repetition_penalty,
                 "Makes tokens that were there less likely; 1: off");
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("generate", "Continue prompts with a model, or predict how fast");
  const auto options = std::make_shared<GenerateOptions>();
  sub->add_option(
         "--model", options->model,
         "Folder of a Hugging Face model, or of a run's checkpoints; of a prediction also a name "
         "of the catalogue")
      ->required();
  sub->add_option("--prompt", options->prompts, "A text to go on from; several make a batch")
      ->take_all();
  sub->add_option("--prompt-file", options->prompt_file, "A file with such a text");
  sub->add_option("--max-tokens", options->max_tokens,
                  "Of each output (default 128, or as many as the model's positions leave)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  add_sampling(*sub, options->sampling);
  sub->add_option("--seed", options->seed, "Of the drawn tokens");
  sub->add_flag("--ignore-end", options->ignore_end, "Go on behind the token that ends a text");
  sub->add_option("--weights", options->weights, "Folder of the weights, where not the model's");
  sub->add_option("--tokenizer", options->tokenizer, "Folder or file, where not the model's");
  sub->add_option("--precision", options->precision, "fp32, bf16 or fp16");
  sub->add_option("--backend", options->backend,
                  "cpu, cuda, or sim: times and memory without a text (default: by the cluster)");
  sub->add_option("--cluster", options->cluster, "Whose device a prediction is for");
  sub->add_option("--prompt-tokens", options->prompt_tokens,
                  "Of a prediction, instead of a prompt: its length")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  sub->add_option("--sequences", options->sequences, "Of a prediction: how many at once")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  sub->add_option("--ranks", options->ranks,
                  "Devices that have the model together, a part of every layer each (default 1)")
      ->check(CLI::Range(1, 64));
  add_format(*sub, options->format, "table (the text) or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return generate(*options); }; });
}

}  // namespace zl::cli
