#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/published/published_run.h"
#include "scenarios/published/run_shape.h"

namespace zl {
namespace {

bool is_bert(const CsvRow& row) { return row.at("model").starts_with("BERT-Large"); }

// Options of programs that this one has not.
struct OtherProgram {
  std::string_view option, why;
};
constexpr std::array kOtherPrograms = {
    OtherProgram{"fp8-format", "products in 8 bits"},
    OtherProgram{"float8", "products in 8 bits"},
    OtherProgram{"multi-latent-attention", "a program of another kind"},
    OtherProgram{"use-megatron-fsdp", "a program of another kind"},
    OtherProgram{"async TP", "asynchronous tensor parallelism"},
    OtherProgram{"cross-entropy-loss-fusion", "another kernel of the loss"},
    OtherProgram{"defer-embedding-wgrad-compute", "another kernel of the loss"},
    OtherProgram{"microbatch-group-size", "groups of other sizes"}};

void check_kind(const PublishedRun& run) {
  const CsvRow& row = run.row;
  const std::string& model = row.at("model");
  for (const char* other : {"moe", "t5", "bert", "multimodal", "mimo", "hybrid", "mamba"}) {
    if (model == other) throw Inexpressible{"a model of another kind (" + model + ")"};
  }
  if (whole(row, "ep", 1) > 1) throw Inexpressible{"experts"};
  if (whole(row, "cp", 1) > 1) throw Inexpressible{"context parallelism"};
  if (contains(row.at("precision"), "8")) throw Inexpressible{"products in 8 bits"};
  for (const auto& [option, why] : kOtherPrograms) {
    if (has_option(row, option)) throw Inexpressible{std::string(why)};
  }
  if (run.software.empty()) throw Inexpressible{"no profile of its software"};
  if (run.gpu.empty()) throw Inexpressible{"no cluster of its GPU"};
}

// Narayanan et al. 2021, equation 3: FLOPs of a GPT's step, with recomputation or without.
double gpt_flops(const RunShape& shape, bool recomputed) {
  const auto s = static_cast<double>(shape.sequence), h = static_cast<double>(shape.hidden);
  const auto layers = static_cast<double>(shape.layers), v = static_cast<double>(shape.vocab);
  const double block = recomputed ? 96 : 72, head = recomputed ? 16 : 12;
  return block * shape.batch() * s * layers * h * h * (1 + s / (6 * h) + v / (head * layers * h));
}

double seconds_of(const PublishedRun& run, const RunShape& shape, double value) {
  const auto ranks = static_cast<double>(shape.ranks);
  const double tokens = shape.batch() * static_cast<double>(shape.sequence);
  if (run.quantity == "iteration_time") return run.unit == "ms" ? value / 1000 : value;
  if (run.quantity == "tokens_per_s_per_gpu") return tokens / ranks / value;
  if (run.quantity == "samples_per_s") return shape.batch() / value;
  if (run.quantity == "samples_per_gpu_per_s") return shape.batch() / ranks / value;
  if (run.quantity == "achieved_tflops_per_gpu") {
    return gpt_flops(shape, true) / ranks / (value * 1e12);
  }
  if (run.quantity == "model_tflops_per_gpu") {
    return gpt_flops(shape, false) / ranks / (value * 1e12);
  }
  throw Inexpressible{"a quantity that is no step time"};
}

double bytes_of(const PublishedRun& run, double value) {
  if (run.unit == "GiB") return value * 1024 * 1024 * 1024;
  if (run.unit == "GB") return value * 1e9;
  throw Inexpressible{"memory in another unit"};
}

// What a run says of its GPT.
void add_stated(const CsvRow& row, const RunShape& shape, Json& model) {
  if (has_option(row, "untie-embeddings-and-output-weights")) model["tied_embeddings"] = false;
  if (has_option(row, "qk-layernorm")) model["qk_norm"] = true;
  if (has_option(row, "disable-bias-linear")) model["qkv_bias"] = model["linear_bias"] = false;
  if (row.at("position") == "rope" || has_option(row, "rope")) model["position"] = "rope";
  if (has_option(row, "swiglu")) {
    model["activation"] = "swiglu";
    const std::int64_t ffn = shape.hidden * 8 / 3 / 64 * 64;  // Megatron-LM's own default
    if (!model.contains("ffn")) model["ffn"] = ffn;
  }
  if (const std::string& dropout = row.at("dropout"); !dropout.empty()) {
    model["dropout"] = model["attention_dropout"] = real_in(dropout).value_or(-1);
  }
}

Json model_of(const PublishedRun& run, const RunShape& shape) {
  const CsvRow& row = run.row;
  if (is_bert(row)) return "bert-large";
  const std::int64_t heads = stated(row, "heads");
  if (shape.hidden % heads != 0) throw Inexpressible{"heads that do not divide hidden"};
  Json model = {{"name", "published"},
                {"family", is_llama(row) ? "llama" : "gpt2"},
                {"layers", shape.layers},
                {"hidden", shape.hidden},
                {"heads", heads},
                {"vocab", shape.vocab},
                {"max_sequence", shape.sequence}};
  const std::int64_t ffn = whole(row, "ffn", 0), kv_heads = whole(row, "kv_heads", 0);
  if (ffn > 0) model["ffn"] = ffn;
  if (is_llama(row)) {
    if (kv_heads > 0) model["kv_heads"] = kv_heads;
    model["rope_theta"] = 500000.0;
    model["norm_epsilon"] = 1e-5;
    return model;
  }
  if (kv_heads > 0) model["kv_heads"] = kv_heads;
  add_stated(row, shape, model);
  return model;
}

// "8x HDR InfiniBand 200Gb/s per node", "400Gb/s RDMA per GPU": bytes/s of a GPU; 0: not said.
double bytes_between_nodes(const std::string& link, int node_devices) {
  const std::size_t end = link.find("Gb/s");
  if (end == std::string::npos || contains(link, "Ethernet")) return 0;
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(link[begin - 1])) != 0)) --begin;
  double gigabits = std::atof(link.c_str() + begin);
  if (link.size() > 1 && link[1] == 'x') gigabits *= std::atof(link.c_str());
  if (contains(link, "per node")) gigabits /= node_devices;
  return gigabits * 1e9 / 8;
}

Json cluster_of(const PublishedRun& run, const RunShape& shape) {
  sim::ClusterSpec cluster = load_cluster(run.gpu);
  const int node = static_cast<int>(whole(run.row, "gpus_per_node", cluster.node_devices));
  if (node > 0) cluster.node_devices = node;
  const double link = bytes_between_nodes(run.row.at("inter_node_link"), cluster.node_devices);
  if (link > 0) cluster.inter.bandwidth = link;
  cluster.devices = static_cast<int>(shape.ranks);
  return parse_json(sim::cluster_json(cluster), run.id);
}

std::string recompute_of(const PublishedRun& run) {
  const std::string& text = run.row.at("recompute");
  if (text.starts_with("full")) return "full";
  const bool fsdp = run.software.starts_with("torch");
  if (text == "selective") return fsdp ? "selective:products" : "selective:attention";
  // That formula counts a second forward.
  return run.quantity == "achieved_tflops_per_gpu" ? "full" : "none";
}

void add_parallel(const PublishedRun& run, const RunShape& shape, Json& extension) {
  const std::int64_t replicas = whole(run.row, "replicas", 1);
  if (shape.tensor * shape.pipeline * replicas == 1) return;
  Json parallel = {{"tensor", shape.tensor}, {"pipeline", shape.pipeline}};
  if (replicas > 1) parallel["replicate"] = replicas;
  if (shape.chunks > 1) {
    parallel["schedule"] = "interleaved";
    parallel["virtual_stages"] = shape.chunks;
  }
  if (const std::string& schedule = run.row.at("schedule"); !schedule.empty()) {
    parallel["schedule"] = schedule;
  }
  if (!shape.layers_per_stage.empty()) parallel["layers_per_stage"] = shape.layers_per_stage;
  const std::string& sequence = run.row.at("seq_parallel");
  if (shape.tensor > 1 && (sequence == "yes" || sequence == "True")) {
    parallel["sequence_parallel"] = true;
  }
  extension["parallel"] = parallel;
}

Json strategy_of(const PublishedRun& run, const RunShape& shape) {
  const CsvRow& row = run.row;
  const std::string& stage = row.at("zero_stage");
  Json zero = {{"stage", stage.empty() ? 0 : std::atoi(stage.c_str())}};
  Json extension = {{"recompute", recompute_of(run)}};
  Json strategy = {{"train_micro_batch_size_per_gpu", shape.micro_batch},
                   {"gradient_accumulation_steps", shape.accumulation},
                   {"data_types", {{"grad_accum_dtype", "fp32"}}}};
  strategy[row.at("precision") == "bf16" ? "bf16" : "fp16"] = {{"enabled", true}};
  const std::string& offload = row.at("offload");
  if (offload.starts_with("CPU")) {
    zero["offload_optimizer"] = {{"device", "cpu"}};
    if (contains(offload, "activation")) {
      strategy["activation_checkpointing"] = {{"cpu_checkpointing", true}};
    }
  } else if (!offload.empty()) {
    throw Inexpressible{"offload that is not described"};
  }
  if (is_bert(row)) {
    strategy.erase("data_types");
    strategy["communication_data_type"] = "fp16";
    if (row.at("optimizer").starts_with("1-bit")) {
      strategy["optimizer"] = {{"type", "OneBitAdam"},
                               {"params", {{"lr", 4e-4}, {"freeze_step", 2}}}};
    }
  }
  add_parallel(run, shape, extension);
  strategy["zero_optimization"] = zero;
  strategy["x-zerolab"] = extension;
  return strategy;
}

Expressed expressed(const PublishedRun& run, const std::string& software) {
  check_kind(run);
  const RunShape shape = shape_of(run);
  const auto measured = [&](double value) {
    return is_memory(run) ? bytes_of(run, value) : seconds_of(run, shape, value);
  };
  Expressed out;
  (is_memory(run) ? out.bytes : out.seconds) = measured(run.value);
  for (const double value : run.values) out.every.push_back(measured(value));
  // Frozen steps of 1-bit Adam come after the second.
  const int steps = run.row.at("optimizer").starts_with("1-bit") ? 6 : 2;
  const Json document = {{"schema", 1},
                         {"model", model_of(run, shape)},
                         {"cluster", cluster_of(run, shape)},
                         {"strategies", Json::array({strategy_of(run, shape)})},
                         {"run",
                          {{"ranks", shape.ranks},
                           {"steps", steps},
                           {"sequence_length", shape.sequence},
                           {"software", software.empty() ? run.software : software}}}};
  out.scenario = scenario_from_json(to_text(document, -1), run.id);
  return out;
}

}  // namespace

bool is_memory(const PublishedRun& run) { return run.quantity.starts_with("peak_"); }

bool is_reserved_memory(const PublishedRun& run) { return run.quantity == "peak_memory_reserved"; }

bool is_of_last_rank(const PublishedRun& run) { return contains(run.source, "its own tests"); }

Expressed express(const PublishedRun& run, const std::string& software) {
  try {
    return expressed(run, software);
  } catch (const Inexpressible& reason) {
    return {.scenario = {}, .every = {}, .why_not = reason.why};
  } catch (const Error& error) {
    return {.scenario = {}, .every = {}, .why_not = error.what()};
  }
}

}  // namespace zl
