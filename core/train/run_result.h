// What one run of one strategy produced: the rows of `zerolab run -o json` and of the database.
// Ownership: values. Threads: filled by one thread, then immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/memory.h"

namespace zl {

// `interrupted`: stopped on request; the steps until then are as those of a finished run.
enum class Outcome : std::uint8_t { ok, out_of_memory, infeasible, failed, interrupted };
inline constexpr Outcome kOutcomes[] = {Outcome::ok, Outcome::out_of_memory, Outcome::infeasible,
                                        Outcome::failed, Outcome::interrupted};
const char* name_of(Outcome outcome);  // "ok", "out_of_memory", ...

// Bytes by tag, index = static_cast<size_t>(MemoryTag).
struct TaggedBytes {
  std::array<std::int64_t, kMemoryTags> tag{};
  std::int64_t total() const;
  bool operator==(const TaggedBytes&) const = default;
};

struct CollectiveTotals {
  // all_reduce | reduce_scatter | all_gather | broadcast | ...; between tiers: copy | read | write
  std::string collective;
  // "data": gradients, weights and activations; "control": loss, overflow flag, norm; "tiers":
  // offload
  std::string group;
  std::string axis;        // of the mesh, along which it goes: name_of(Axis); "" between tiers
  std::string link;        // "threads", "nvlink", ...; "device_to_host", "host_to_file", ...
  std::int64_t count = 0;  // calls (files: requests) of one rank over the whole run
  std::int64_t bytes = 0;  // wire bytes sent, or bytes moved, by one rank over the whole run

  bool operator==(const CollectiveTotals&) const = default;
};

// Parts of the median step, seconds; what they leave of it is the wait for the host.
struct TimeBreakdown {
  double compute = 0;
  double exposed_communication = 0;
  double offload_stall = 0;
  double bubble = 0;
  double optimizer = 0;
  double exposed_tensor = 0,
         exposed_pipeline = 0;  // of the exposed communication, along these axes

  double exposed_data() const { return exposed_communication - exposed_tensor - exposed_pipeline; }
  bool operator==(const TimeBreakdown&) const = default;
};

struct StepTime {
  double median = 0, min = 0, max = 0;  // seconds, the first (warm-up) step excluded

  bool operator==(const StepTime&) const = default;
};

// What a run was a run of, besides its strategy, ranks and precision: what tells two rows apart.
// Empty and 0: unknown.
struct RunSetup {
  std::string model, cluster;
  std::string software;         // whose speed a simulated GPU has; empty: this core's own
  std::string data, eval_data;  // eval_data: that judged the model
  std::int64_t sequence_length = 0, micro_batch = 0, gradient_accumulation = 0;
  std::int64_t tokens_per_step = 0;  // of all ranks: the global batch

  bool operator==(const RunSetup&) const = default;
};

// Of a prediction whose bar lies across the device's memory: maybe.
enum class Fits : std::uint8_t { yes, maybe, no };
const char* name_of(Fits fits);  // "yes", "maybe", "no"

// What the software that a prediction is of would hold itself of the fullest device, in bytes: a
// prediction with an error bar, beside this core's, which are exact. in_use 0: not known, or the
// software is this core.
struct HeldBySoftware {
  std::int64_t in_use = 0;         // at the peak
  std::int64_t device = 0;         // with what its allocator, context and libraries take
  std::int64_t low = 0, high = 0;  // error bar of `device`
  std::string when;                // the peak is

  bool is_known() const { return in_use > 0; }
  Fits within(std::int64_t capacity) const;  // 0: no limit
  bool operator==(const HeldBySoftware&) const = default;
};

// What a run that did not fit would take of memory without limits; bytes of one rank, 0: unknown.
struct MemoryNeed {
  std::int64_t in_use = 0;    // of the device, at the peak
  std::int64_t reserved = 0;  // what its pool reserves for that: this must fit
  std::int64_t host = 0, nvme = 0;

  std::int64_t fragmentation() const { return reserved - in_use; }
  bool operator==(const MemoryNeed&) const = default;
};

// How well a model tells the labels of texts that it was not trained on, and how well they are told
// without it. Shares of the texts; rows 0: it was not judged.
struct LabelScores {
  // Of one label: how many texts have it, are told to have it, and both.
  struct Of {
    std::string name;
    std::int64_t texts = 0, told = 0, correct = 0;

    double f1() const {
      const auto both = static_cast<double>(texts + told);
      return both > 0 ? 2 * static_cast<double>(correct) / both : 0;
    }
    bool operator==(const Of&) const = default;
  };

  std::string data;
  std::int64_t rows = 0;                                     // texts
  double loss = 0;                                           // mean
  double accuracy = 0, accuracy_low = 0, accuracy_high = 0;  // and its interval, 95 %
  double macro_f1 = 0;
  double majority_accuracy = 0, majority_macro_f1 = 0;  // of always saying the commonest
  double words_accuracy = 0, words_macro_f1 = 0;        // of naive Bayes over counts of words
  std::vector<Of> by_label = {};                        // of the model, in its order

  bool operator==(const LabelScores&) const = default;
};

// What one stage of a pipeline holds and does, on the rank that stands for it.
struct StageResult {
  int rank = 0;   // of the world
  int ranks = 0;  // that do the same
  TaggedBytes peak_device;
  std::int64_t reserved_device = 0;
  double step_seconds = 0;  // of the median step
  TimeBreakdown time;

  bool operator==(const StageResult&) const = default;
};

// What a model was worth after so many steps, on data that it does not train on.
struct EvaluationPoint {
  std::int64_t step = 0;    // 0: before the first
  double loss = 0;          // mean over the tokens that count
  std::int64_t tokens = 0;  // of them

  double perplexity() const;
  bool operator==(const EvaluationPoint&) const = default;
};

struct RunResult {
  std::string strategy;
  std::string backend;     // cpu | cuda | sim
  bool predicted = false;  // by recording: times are priced, there are no losses
  std::string precision;   // fp32 | bf16 | fp16, of weights and products
  Outcome outcome = Outcome::ok;
  std::string message;  // empty when ok
  int ranks = 0;
  std::int64_t steps = 0;       // completed optimizer steps (skipped ones included)
  std::int64_t first_step = 0;  // steps that a resumed run did not take again; 0: fresh
  std::int64_t run_id = 0;      // row in the database; 0: not stored

  std::vector<double> loss;       // mean over ranks and micro-batches, per step
  std::vector<double> grad_norm;  // global, before clipping; per step
  std::vector<double> learning_rate;
  std::vector<double> step_seconds;
  std::vector<double> loss_scale;
  std::int64_t skipped_steps = 0;
  std::vector<EvaluationPoint> evaluations;  // in the order of their steps
  // Of a resumed run, the best of the steps that it did not take again; none: nothing judged them.
  std::optional<EvaluationPoint> best_before = {};

  double tokens_per_second = 0;  // all ranks
  StepTime step_time;
  double step_time_low = 0, step_time_high = 0;  // error bar of a predicted time; 0: measured
  double own_step_error = 0;  // of its logarithm, what other strategies there do not share; 0: all
  // What predicted times rest on: "calibration" of this machine with as many ranks, "other ranks",
  // "other precision" where it was calibrated in none that the run computes in,
  // "data sheet", "no published run" likewise, of what none supports of that software on such
  // devices, or "guess" of a machine that nobody calibrated. Empty: they were measured.
  std::string priced_from;
  double model_flops_per_step = 0;  // all ranks
  double mfu = 0;                   // 0: peak unknown
  std::string mfu_convention = "6N+12Lhs";

  TaggedBytes peak_device, peak_host, peak_nvme;
  std::int64_t reserved_device = 0, reserved_host = 0;
  std::int64_t device_capacity = 0;  // bytes that a rank may reserve of its device; 0: no limit
  MemoryNeed need;
  HeldBySoftware software_held;  // of a prediction
  std::vector<CollectiveTotals> communication;
  std::int64_t wire_bytes_per_step = 0;
  TimeBreakdown time;
  int rank = 0;  // whose bytes and times these are: of a prediction, the one with the highest peak
  std::vector<StageResult> stages;  // of a predicted pipeline, in order; else empty
  LabelScores labels;               // of a model that tells them, after the last step

  std::int64_t op_count = 0;           // ops of one rank over the whole run
  std::uint64_t op_sequence_hash = 0;  // order, kinds, shapes and dtypes of the ops of one rank
  std::vector<std::string> warnings;
  RunSetup setup;

  bool operator==(const RunResult&) const = default;  // a NaN is equal to nothing
};

// Whether nothing measured on such devices is behind a prediction's prices.
inline bool rests_on_data_sheet(const RunResult& run) {
  return run.priced_from == "data sheet" || run.priced_from == "no published run";
}

// Whether the run tells if the memory is enough.
bool judges_memory(const RunResult& run);
// Whether the device's memory is enough: by what the software would hold itself, where that is
// known; else as the run ended.
Fits fits(const RunResult& run);
// Bytes in use on the device at the peak: by the software itself, where that is known.
std::int64_t bytes_at_peak(const RunResult& run);
// What decides of a run that fits or not: the same bytes, else what the pool reserves.
std::int64_t bytes_that_must_fit(const RunResult& run);

// The one with the lowest loss, the first of equals; null: there is none with a finite loss.
const EvaluationPoint* best_of(const std::vector<EvaluationPoint>& evaluations);
// Of the whole training, whoever took its steps.
const EvaluationPoint* best_evaluation(const RunResult& result);

// The steps that were skipped because a gradient overflowed, counted from 1 over the whole
// training.
std::vector<std::int64_t> overflowed_steps(const RunResult& result);

}  // namespace zl
