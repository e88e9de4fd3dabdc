// The bytes that a run's ranks moved between them beside those of its books.
// Ownership: values. Threads: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/runs.h"

namespace zl::test {

// Of all ranks together.
struct TrafficSum {
  std::int64_t data = 0, control = 0;
};

// What the books of one rank say, times the ranks. They are the ring's: each of N parts of an
// all-reduced tensor is as long as the longest, so that a scalar costs N ranks as much as N
// scalars. A transport that cuts elsewhere moves each element 2 (N - 1) times, whatever the ranks
// are.
inline TrafficSum booked(const RunResult& result, int ranks) {
  TrafficSum sum;
  for (const CollectiveTotals& each : result.communication) {
    if (each.collective == "send") continue;  // between stages
    if (each.group == "data") sum.data += ranks * each.bytes;
    if (each.group == "control") sum.control += ranks * each.bytes;
  }
  return sum;
}

// What crosses between ranks at least, whoever sends it: from the tensors of the recorded calls.
inline TrafficSum least(const Trace& trace) {
  TrafficSum sum;
  for (const TraceEvent& event : trace.events()) {
    if (event.type != EventType::collective) continue;
    const std::int64_t others = event.k - 1;
    const auto kind = static_cast<CollectiveKind>(event.kind);
    const std::int64_t bytes = kind == CollectiveKind::all_reduce   ? 2 * others * event.bytes_read
                               : kind == CollectiveKind::all_gather ? others * event.bytes_written
                                                                    : others * event.bytes_read;
    (event.purpose == static_cast<std::uint8_t>(Purpose::data) ? sum.data : sum.control) += bytes;
  }
  return sum;
}

// Padding makes the parts of gradients and weights equal, so their books are exact. Scalars are
// rounded up in the books only.
inline void expect_traffic(const TrafficSum& moved, int ranks, const RankOutcome& outcome,
                           const std::string& strategy) {
  const std::string what = strategy + " on " + std::to_string(ranks) + " ranks";
  EXPECT_GT(moved.data, 0) << what;
  EXPECT_EQ(moved.data, booked(outcome.result, ranks).data) << what;
  EXPECT_EQ(moved.data, least(outcome.trace).data) << what;
  EXPECT_EQ(moved.control, least(outcome.trace).control) << what;
  EXPECT_LE(moved.control, booked(outcome.result, ranks).control) << what;
}

// Every stage, with what changes its messages: types, buckets, one bit, eight bits.
inline std::vector<Strategy> strategies_that_send() {
  std::vector<Strategy> all;
  for (int stage = 0; stage <= 3; ++stage) {
    all.push_back(strategy(stage));
    Strategy s = strategy(stage, DType::bf16);
    s.zero.overlap_comm = true;
    s.gradient_accumulation = 2;
    s.name += " bf16, overlap, accumulation";
    all.push_back(s);
  }
  Strategy onebit = strategy(1);
  onebit.name = "1-bit Adam";
  onebit.optimizer.kind = OptimizerKind::onebit_adam;
  onebit.optimizer.onebit.freeze_step = 2;
  all.push_back(onebit);
  Strategy quantized = strategy(3, DType::bf16);
  quantized.name = "ZeRO++";
  quantized.zero.quantized_weights = quantized.zero.quantized_gradients = true;
  all.push_back(quantized);
  return all;
}

}  // namespace zl::test
