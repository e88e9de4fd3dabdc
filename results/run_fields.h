// Which column holds which field of a run: what is written and what is read are one list.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "core/train/run_result.h"

namespace zl {

inline constexpr double kPicosecondsPerSecond = 1e12;

// A field in seconds whose column is whole picoseconds.
template <class Double>
struct Seconds {
  Double& value;
};
template <class Double>
Seconds(Double&) -> Seconds<Double>;

// "peak_activation_bytes" of the table stages.
inline const char* peak_column(MemoryTag tag) {
  constexpr const char* kNames[kMemoryTags] = {"peak_parameter_bytes",     "peak_gradient_bytes",
                                               "peak_optimizer_bytes",     "peak_activation_bytes",
                                               "peak_communication_bytes", "peak_workspace_bytes",
                                               "peak_staging_bytes",       "peak_kv_cache_bytes"};
  return kNames[static_cast<std::size_t>(tag)];
}

// Visits (column, field) of the table runs; Run is RunResult or const RunResult.
template <class Run, class Visit>
void visit_columns(Run& run, Visit&& visit) {
  visit("strategy", run.strategy);
  visit("backend", run.backend);
  visit("precision", run.precision);
  visit("outcome", run.outcome);
  visit("message", run.message);
  visit("ranks", run.ranks);
  visit("steps", run.steps);
  visit("first_step", run.first_step);
  visit("skipped_steps", run.skipped_steps);
  visit("tokens_per_second", run.tokens_per_second);
  visit("step_time_median_ps", Seconds{run.step_time.median});
  visit("step_time_min_ps", Seconds{run.step_time.min});
  visit("step_time_max_ps", Seconds{run.step_time.max});
  visit("step_time_low_ps", Seconds{run.step_time_low});
  visit("step_time_high_ps", Seconds{run.step_time_high});
  visit("model_flops_per_step", run.model_flops_per_step);
  visit("mfu", run.mfu);
  visit("mfu_convention", run.mfu_convention);
  visit("reserved_device_bytes", run.reserved_device);
  visit("reserved_host_bytes", run.reserved_host);
  visit("priced_from", run.priced_from);
  visit("own_step_error", run.own_step_error);
  visit("device_capacity_bytes", run.device_capacity);
  visit("needed_in_use_bytes", run.need.in_use);
  visit("needed_reserved_bytes", run.need.reserved);
  visit("needed_host_bytes", run.need.host);
  visit("needed_nvme_bytes", run.need.nvme);
  visit("software_in_use_bytes", run.software_held.in_use);
  visit("software_device_bytes", run.software_held.device);
  visit("software_low_bytes", run.software_held.low);
  visit("software_high_bytes", run.software_held.high);
  visit("software_peak_at", run.software_held.when);
  visit("wire_bytes_per_step", run.wire_bytes_per_step);
  visit("op_count", run.op_count);
  visit("op_sequence_hash", run.op_sequence_hash);
  visit("rank", run.rank);
  visit("tokens_per_step", run.setup.tokens_per_step);
  visit("software", run.setup.software);
}

template <class Stage, class Visit>
void visit_stage(Stage& stage, Visit&& visit) {  // table stages
  visit("rank", stage.rank);
  visit("ranks", stage.ranks);
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    visit(peak_column(static_cast<MemoryTag>(i)), stage.peak_device.tag[i]);
  }
  visit("reserved_device_bytes", stage.reserved_device);
  visit("step_time_ps", Seconds{stage.step_seconds});
  visit("compute_ps", Seconds{stage.time.compute});
  visit("exposed_communication_ps", Seconds{stage.time.exposed_communication});
  visit("exposed_tensor_ps", Seconds{stage.time.exposed_tensor});
  visit("exposed_pipeline_ps", Seconds{stage.time.exposed_pipeline});
  visit("offload_stall_ps", Seconds{stage.time.offload_stall});
  visit("bubble_ps", Seconds{stage.time.bubble});
  visit("optimizer_ps", Seconds{stage.time.optimizer});
}

template <class Labels, class Visit>
void visit_labels(Labels& labels, Visit&& visit) {  // table label_scores
  visit("data", labels.data);
  visit("texts", labels.rows);
  visit("loss", labels.loss);
  visit("accuracy", labels.accuracy);
  visit("accuracy_low", labels.accuracy_low);
  visit("accuracy_high", labels.accuracy_high);
  visit("macro_f1", labels.macro_f1);
  visit("majority_accuracy", labels.majority_accuracy);
  visit("majority_macro_f1", labels.majority_macro_f1);
  visit("words_accuracy", labels.words_accuracy);
  visit("words_macro_f1", labels.words_macro_f1);
}

template <class Run, class Visit>
void visit_series(Run& run, Visit&& visit) {  // table step_metrics
  visit("loss", run.loss);
  visit("grad_norm", run.grad_norm);
  visit("learning_rate", run.learning_rate);
  visit("step_seconds", run.step_seconds);
  visit("loss_scale", run.loss_scale);
}

template <class Run, class Visit>
void visit_peaks(Run& run, Visit&& visit) {  // table memory_peaks
  visit("device", run.peak_device);
  visit("host", run.peak_host);
  visit("nvme", run.peak_nvme);
}

template <class Run, class Visit>
void visit_phases(Run& run, Visit&& visit) {  // table phases
  visit("compute", Seconds{run.time.compute});
  visit("exposed_communication", Seconds{run.time.exposed_communication});
  visit("offload_stall", Seconds{run.time.offload_stall});
  visit("bubble", Seconds{run.time.bubble});
  visit("optimizer", Seconds{run.time.optimizer});
  visit("exposed_tensor", Seconds{run.time.exposed_tensor});
  visit("exposed_pipeline", Seconds{run.time.exposed_pipeline});
}

// "name, name, ..." of what `visit_all` gives its argument.
template <class VisitAll>
std::string joined_columns(VisitAll&& visit_all) {
  std::string names;
  visit_all([&names](const char* name, const auto&) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  });
  return names;
}

inline std::string run_columns() {
  return joined_columns([run = RunResult{}](auto&& add) { visit_columns(run, add); });
}
inline std::string stage_columns() {
  return joined_columns([stage = StageResult{}](auto&& add) { visit_stage(stage, add); });
}
inline std::string label_columns() {
  return joined_columns([labels = LabelScores{}](auto&& add) { visit_labels(labels, add); });
}

}  // namespace zl
