// The "run" section of a scenario: its settings, what the command line says instead of them, and
// one list of its keys.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/dtype.h"
#include "core/model/model_config.h"
#include "simulator/json/reading.h"

namespace zl {

// The verses of the King James Bible that are trained on, and those of every tenth chapter, which
// are not (as a name of data); labels "old" and "new", the testament.
inline constexpr const char* kTestaments = "bible-testaments";
inline constexpr const char* kHeldOutTestaments = "bible-testaments-held-out";

// Data-parallel ranks of the real backends are threads, but for launched processes.
inline constexpr std::int64_t kMaxRealRanks = 64;

struct RunSettings {
  std::int64_t ranks = 0;  // without one: as many as the cluster's name says, 4 on "local"
  std::int64_t steps = 20;
  std::uint64_t seed = 1234;
  std::int64_t sequence_length = 0;  // without one: the model's max_sequence
  std::string data = "bible";        // or a text file, or a .bin of uint16 tokens
  std::string tokenizer = "byte";    // or a folder with vocab.json and merges.txt
  std::string eval_data;             // as data, to judge the model by; empty: nothing does
  std::int64_t eval_every = 0;       // steps between judgements; 0: after the last step only
  std::int64_t eval_stride = 0;      // tokens between begins of its sequences; 0: their length
  std::int64_t eval_samples = 0;     // sequences of eval_data, evenly spread over it; 0: all
  // Of an encoder: classify or mlm; empty: what the model's head is for.
  std::string task;
  std::int64_t labels = 0;         // that it is to tell; 0: as many as the model does
  std::string weights;             // folder of a Hugging Face model; empty: drawn by the seed
  std::int64_t device_memory = 0;  // bytes; 0: unlimited
  std::int64_t host_memory = 0;    // bytes of a rank's offload; 0: unlimited
  std::string nvme_path;           // empty: what each strategy says
  bool deterministic = true;       // see WorldOptions
  // Of the cpu backend: threads of this process, or the processes that mpirun started.
  std::string communicator = "threads";
  // Bytes a second that a rank of this machine, or a node of another cluster, sends at most; 0:
  // what the machine or the cluster has. See sim::with_link_bandwidth.
  double link_bandwidth = 0;
  // What a simulated GPU runs: a software of the catalogue or a file; empty: see scenario_software.
  std::string software;
  // Overrides what the strategies say.
  std::optional<DType> precision;
  // For strategies that state no batch; from the command line they override every strategy.
  std::int64_t micro_batch = 0;
  std::int64_t gradient_accumulation = 0;
};

// What the command line says of a run; unset members leave the file's values. Paths are relative to
// the working directory.
struct RunOverrides {
  std::optional<std::int64_t> ranks, steps, seed, sequence_length, micro_batch,
      gradient_accumulation, eval_every, eval_stride, eval_samples, labels;
  std::optional<std::string> data, eval_data, tokenizer, task, weights, device_memory, host_memory,
      nvme_path, link_bandwidth, precision, communicator, software;
  std::optional<bool> deterministic;
};

// What the value of a key may be.
namespace run_value {
struct Whole {
  std::int64_t minimum, maximum;
  std::int64_t kilo = 1000;  // what the k of a text such as "8k" stands for
};
// Texts with a unit, such as 16GiB and 4.1Gbit; a number is of bytes, a second, and no less than
// kLeastBytes: below it somebody forgot the unit. 0: no limit.
struct Bytes {};
struct Bandwidth {};
inline constexpr std::int64_t kLeastBytes = 1'000'000;
struct Precision {};  // fp32, bf16, fp16
struct Text {
  const char* choices = "";  // separated by ", "; empty: any text
};
struct Flag {};
}  // namespace run_value

struct RunKey {
  const char* name;  // in files; the option is its --name with dashes
  enum class Written : std::uint8_t {
    always,
    when_not_default,  // scenarios from before the key keep their hash
    never              // the resolved strategies have it
  } written;
  // Whether the books of a simulated rank depend on it: it computes no numbers and is priced later.
  enum class Recorded : std::uint8_t {
    yes,
    no,
    of_texts  // where the head reads texts, which are drawn with their lengths
  } recorded;
  const char* help;
};

// "micro_batch" -> "--micro-batch".
std::string option_of(const RunKey& key);

// One list serves files, overrides, both command lines and the check for unknown keys. Calls
// visit(RunKey, &RunSettings::key, &RunOverrides::key, run_value) in the order of canonical files.
template <class Visitor>
void visit_run_keys(Visitor&& visit) {
  using namespace run_value;
  using enum RunKey::Written;
  using enum RunKey::Recorded;
  using S = RunSettings;
  using O = RunOverrides;
  constexpr std::int64_t kMillion = 1'000'000;  // a result holds the time of each step
  const auto key = [](const char* name, RunKey::Written written, RunKey::Recorded recorded,
                      const char* help) {
    return RunKey{name, written, recorded, help};
  };
  visit(key("ranks", always, yes, "Data-parallel ranks"), &S::ranks, &O::ranks, Whole{1, kMillion});
  visit(key("steps", always, yes, "Optimizer steps"), &S::steps, &O::steps, Whole{1, kMillion});
  visit(key("seed", always, of_texts, "Seed of weights, data order and dropout"), &S::seed,
        &O::seed, Whole{0, INT64_MAX});
  visit(key("precision", never, yes, "fp32, bf16 or fp16"), &S::precision, &O::precision,
        Precision{});
  visit(key("micro_batch", never, yes, "Sequences per rank and micro-batch"), &S::micro_batch,
        &O::micro_batch, Whole{1, kMillion});
  visit(key("gradient_accumulation", never, yes, "Micro-batches per step"),
        &S::gradient_accumulation, &O::gradient_accumulation, Whole{1, kMillion});
  visit(key("sequence_length", always, yes, "Tokens per sequence"), &S::sequence_length,
        &O::sequence_length, Whole{1, 1 << 24, 1024});
  visit(key("data", always, no,
            "Text file, .bin of uint16 tokens, bible, or synthetic; for an encoder .jsonl, or "
            "bible-testaments"),
        &S::data, &O::data, Text{});
  visit(key("eval_data", when_not_default, no,
            "Text file or .bin that is not trained on: the loss and the perplexity on it"),
        &S::eval_data, &O::eval_data, Text{});
  visit(
      key("eval_every", when_not_default, no,
          "Judge the model by eval_data every N steps and keep the best one (default: at the end)"),
      &S::eval_every, &O::eval_every, Whole{0, kMillion});
  visit(key("eval_stride", when_not_default, no,
            "Tokens from one sequence of eval_data to the next: less than their length gives every "
            "token more to look back at (default: the length)"),
        &S::eval_stride, &O::eval_stride, Whole{0, 1 << 24, 1024});
  visit(key("eval_samples", when_not_default, no,
            "Sequences of eval_data to judge by, evenly spread over it (default: all)"),
        &S::eval_samples, &O::eval_samples, Whole{0, kMillion});
  visit(key("tokenizer", always, no, "byte, or a folder with vocab.json and merges.txt"),
        &S::tokenizer, &O::tokenizer, Text{});
  visit(
      key("task", when_not_default, yes,
          "What an encoder is trained for: classify (labels of texts) or mlm (masked tokens); else "
          "what its head is for"),
      &S::task, &O::task, Text{"classify, mlm"});
  visit(key("labels", when_not_default, yes, "How many labels there are to tell; else the model's"),
        &S::labels, &O::labels, Whole{2, kMillion});
  visit(key("weights", when_not_default, no,
            "Folder of a Hugging Face model to start from (of --model FOLDER: that), or random"),
        &S::weights, &O::weights, Text{});
  visit(key("device_memory", always, yes, "Memory budget of a rank, such as 16GiB"),
        &S::device_memory, &O::device_memory, Bytes{});
  visit(key("host_memory", when_not_default, yes, "Budget of a rank's offload to the host"),
        &S::host_memory, &O::host_memory, Bytes{});
  visit(key("nvme_path", never, yes, "Folder of what is offloaded to nvme"), &S::nvme_path,
        &O::nvme_path, Text{});
  visit(key("link_bandwidth", when_not_default, no,
            "What a rank (of a cluster: a node) sends at most, such as 4.1Gbit"),
        &S::link_bandwidth, &O::link_bandwidth, Bandwidth{});
  visit(key("communicator", when_not_default, no,
            "Of cpu ranks: threads (the default), or mpi for one process a rank (mpirun)"),
        &S::communicator, &O::communicator, Text{"threads, mpi"});
  visit(key("software", when_not_default, no,
            "What a simulated GPU runs: see zerolab show software (default: torch-fsdp2-compile)"),
        &S::software, &O::software, Text{});
  visit(key("deterministic", when_not_default, no,
            "The same bits at every run (the default); without, CUDA fuses more"),
        &S::deterministic, &O::deterministic, Flag{});
}

// Throws Error{invalid} naming the key: unknown keys, 0 ranks, fewer than 1 step, wrong types.
RunSettings read_run_settings(const Json& object);

// Puts what the overrides say into the object of a "run" section.
void apply_overrides(const RunOverrides& overrides, Json& run);

// The model with the head that the task wants. Throws Error{invalid} naming the key for a task of
// an encoder and a model that is none.
ModelConfig for_task(ModelConfig model, const RunSettings& run);

// Throws Error{invalid} when the sequence exceeds learned positions or a sliding window.
void check_sequence_length(const RunSettings& run, const ModelConfig& model);

// Throws Error{invalid} for evaluation keys without eval_data, eval_data without an end, a stride
// that leaves tokens out, or one of an encoder.
void check_evaluation(const RunSettings& run, const ModelConfig& model);

// What is not already part of the resolved strategies, in a fixed order.
Json run_settings_to_json(const RunSettings& run);

}  // namespace zl
