// What a measured trace tells: how long each shape of work took, alone, and what lies in between.
// Ownership: MeasuredTrace refers to its trace. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/cost.h"
#include "core/trace/trace.h"

namespace zl::sim {

// One rank of one real run, with timings. Traces of one run share `run`.
struct MeasuredTrace {
  const Trace* trace = nullptr;
  int ranks = 1;
  int run = 0;
  // Seconds of the typical step at each of the moments of which this is the one that counts,
  // ascending; empty: it is not one of several.
  std::vector<double> moments = {};
  // As on a quiet machine: of its steps the quicker half counts, which other work of the machine
  // disturbed least; else the middle half, those that took neither the most nor the least.
  bool quiet = false;
};

// How many of so many steps a quiet run counts, from the quickest.
constexpr std::size_t quicker_half(std::size_t steps) { return (steps + 1) / 2; }

double mean(const std::vector<double>& values);  // of at least one

// The time of the events of one kind and type that do the same amount of work.
struct Sample {
  EventType type = EventType::op;
  bool on_host = false;             // an op of the host's stream
  Variant variant = Variant::none;  // see product_variant
  std::uint8_t kind = 0;
  DType dtype = DType::f32;
  double units = 0, bytes = 0;  // as LinearCost
  double seconds = 0;
  std::int64_t count = 0;
};

struct HostGaps {
  double per_event = 0;  // seconds between two events of the compute stream that wait for nothing
  double per_step = 0;   // seconds from a step's last event to the next step's first
};

struct Sampling {
  // What takes twenty times as long as usual was disturbed by others and is left out; where ranks
  // share their cores they disturb each other, and that is part of the work.
  bool without_disturbed = false;
  // A collective's own time begins when all of its ranks have come: until then this rank waited for
  // another's ops.
  bool without_waiting = false;
};

// Ops, collectives, copies and file transfers of the steps that count, of those after the first,
// which warms up; of other steps what those that count have not (0/1 Adam clears its errors once).
// Events that run beside another stream's are left out unless there are no others of their kind and
// type. Sorted.
std::vector<Sample> samples_of(const std::vector<MeasuredTrace>& traces, const Sampling& sampling);

// Of the steps that count; runs weigh by what a gap is of their steps.
HostGaps host_gaps(const std::vector<MeasuredTrace>& traces);

// Seconds of each step after the first: from the end of one step's last event to the next's.
std::vector<double> step_seconds(const Trace& trace);

// Whether streams ever ran at the same time.
bool has_overlap(const Trace& trace);

}  // namespace zl::sim
