// Published runs beside what is predicted of them.
// Ownership: values; a Judged refers to its run. Threads: functions use all cores and block.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/published/published_run.h"

namespace zl {

struct Judged {
  const PublishedRun* run = nullptr;
  // Seconds of a step, or bytes of a device; the error bar.
  double measured = 0, predicted = 0, low = 0, high = 0;
  double least = 0;     // no GPU of the stated peak rates is faster; 0: not known
  std::string why_not;  // not expressed or not predicted
  // Predicted with the numbers of a fit without the run's group, or as above where none was fitted
  // to it; 0: not known.
  double left_out = 0;
  std::vector<double> every = {};  // all measurements, of which `measured` is the median

  bool is_predicted() const { return predicted > 0 && !is_impossible(); }
  // What is published is faster than the peak of the GPU that is named.
  bool is_impossible() const { return measured < least; }
  double error() const { return predicted / measured - 1; }
  bool is_inside() const { return low <= measured && measured <= high; }
};

// Of every run; `software` other than "" stands for what the runs say. Throws what a row of the
// catalogue or a file cannot be blamed for.
std::vector<Judged> judge_published(std::span<const PublishedRun> runs,
                                    const std::string& software = "");

// Bytes at the peak of every run of which these were measured, under the profile's section
// `memory`; the others are left out.
std::vector<Judged> judge_published_memory(std::span<const PublishedRun> runs,
                                           const std::string& software = "");

struct Errors {
  double mape = 0, bias = 0, p95 = 0;  // of predicted over measured, less one
  double inside = 0;                   // share of the measurements within the error bar
};

struct Accuracy : Errors {
  std::string source, software, gpu;
  TimeKind kind = TimeKind::measured;
  std::int64_t rows = 0;
  double rank_correlation = 0;       // Spearman's; 0 below 3 rows
  std::optional<Errors> left_out;    // cross-validated; nothing where that is not known of a row
  std::vector<const Judged*> worst;  // at most five
};

// Of what was predicted, all together. rows 0: nothing was.
Accuracy accuracy_of(std::span<const Judged* const> judged);
// All of one kind; `software` and `gpu` are empty.
Accuracy accuracy_of_kind(std::span<const Judged> judged, TimeKind kind);
// By source, software, GPU and kind, in the order of the runs; and by software, GPU and kind.
std::vector<Accuracy> accuracy_by_source(std::span<const Judged> judged);
std::vector<Accuracy> accuracy_by_software(std::span<const Judged> judged);

}  // namespace zl
