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

// What crosses between ranks at least, whoever sends it: from the tensors of a recorded call.
inline void add_least(const TraceEvent& event, TrafficSum& sum) {
  if (event.type != EventType::collective) return;
  const std::int64_t others = event.k - 1;
  const auto kind = static_cast<CollectiveKind>(event.kind);
  const std::int64_t bytes = kind == CollectiveKind::all_reduce   ? 2 * others * event.bytes_read
                             : kind == CollectiveKind::all_gather ? others * event.bytes_written
                                                                  : others * event.bytes_read;
  (event.purpose == static_cast<std::uint8_t>(Purpose::data) ? sum.data : sum.control) += bytes;
}

inline TrafficSum least(const Trace& trace) {
  TrafficSum sum;
  for (const TraceEvent& event : trace.events()) add_least(event, sum);
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

// Of meshes: what the books of a rank say, and what crosses between the ranks of its groups at
// least, told by the first of each group, so that the ranks' sums are those of the mesh.
struct OwnTraffic {
  TrafficSum booked, needed;
};

inline OwnTraffic own_traffic(const RankOutcome& outcome, const Mesh& mesh, int rank) {
  OwnTraffic own{.booked = booked(outcome.result, 1), .needed = {}};
  for (const CollectiveTotals& each : outcome.result.communication) {
    if (each.collective == "send") own.booked.data += each.bytes;
  }
  for (const TraceEvent& event : outcome.trace.events()) {
    const bool sends = event.type == EventType::message && event.kind == 1;
    if (sends) own.needed.data += event.bytes_read;
    if (mesh.coordinate(rank, static_cast<Axis>(event.axis)) == 0) add_least(event, own.needed);
  }
  return own;
}

// Of the sums over all ranks.
inline void expect_traffic(const TrafficSum& moved, const OwnTraffic& all,
                           const std::string& what) {
  EXPECT_GT(moved.data, 0) << what;
  EXPECT_EQ(moved.data, all.booked.data) << what;
  EXPECT_EQ(moved.data, all.needed.data) << what;
  EXPECT_EQ(moved.control, all.needed.control) << what;
  EXPECT_LE(moved.control, all.booked.control) << what;
}

// Of four ranks: groups of every axis, alone and beside each other.
inline std::vector<Strategy> meshes_that_send() {
  std::vector<Strategy> all;
  const auto add = [&](const char* name, int stage, std::int64_t tensor, std::int64_t pipeline,
                       std::int64_t replicas, PipelineKind schedule) {
    Strategy s = strategy(stage, stage == 1 ? DType::f32 : DType::bf16);
    s.name = name;
    s.micro_batch = 1;
    s.gradient_accumulation = 4;
    s.tensor = {.ranks = tensor, .sequence_parallel = stage > 0};
    s.pipeline = {.ranks = pipeline,
                  .virtual_stages = schedule == PipelineKind::zb_v ? 2 : 1,
                  .schedule = schedule};
    s.zero.replicas = replicas;
    s.zero.overlap_comm = stage == 3;
    all.push_back(s);
  };
  using enum PipelineKind;
  add("tensor 2 x data 2", 0, 2, 1, 1, one_f_one_b);
  add("tensor 4 with sequence parallelism", 1, 4, 1, 1, one_f_one_b);
  add("tensor 2 with sequence parallelism, ZeRO-3", 3, 2, 1, 1, one_f_one_b);
  add("pipeline 2 x data 2, 1f1b", 0, 1, 2, 1, one_f_one_b);
  add("pipeline 4, zb-h1", 1, 1, 4, 1, zb_h1);
  add("pipeline 2 x data 2, zb-v, ZeRO-3", 3, 1, 2, 1, zb_v);
  add("tensor 2 x pipeline 2, ZeRO-2", 2, 2, 2, 1, gpipe);
  add("hsdp 2 x 2", 3, 1, 1, 2, one_f_one_b);
  return all;
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
