// What the engine promises of two runs: the same bits for every strategy, and the same books on the
// recording device. Shared by the engine's tests and the GPU's acceptance run.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "tests/engine/runs.h"

namespace zl::test {

// Of a parameterised test.
struct TrainingCase {
  std::string name;
  ModelConfig model;
  DType dtype;
};
inline void PrintTo(const TrainingCase& one, std::ostream* out) { *out << one.name; }

inline void expect_same_bits(const Finished& a, const Finished& b, const std::string& what) {
  ASSERT_EQ(a.result.loss.size(), b.result.loss.size()) << what;
  for (std::size_t i = 0; i < a.result.loss.size(); ++i) {
    EXPECT_EQ(a.result.loss[i], b.result.loss[i]) << what << ", step " << i + 1;
    EXPECT_EQ(a.result.grad_norm[i], b.result.grad_norm[i]) << what << ", step " << i + 1;
  }
  ASSERT_EQ(a.weights.size(), b.weights.size()) << what;
  for (std::size_t p = 0; p < a.weights.size(); ++p) {
    ASSERT_EQ(a.weights[p].size(), b.weights[p].size()) << what;
    EXPECT_EQ(std::memcmp(a.weights[p].data(), b.weights[p].data(), a.weights[p].size() * 4), 0)
        << what << ", parameter " << p;
  }
}

// That a run did something: every parameter of `after` differs from that of `before`, and the loss
// has come down to `share` of the first. Two runs of an engine that does nothing are equal too.
inline void expect_trained(const Finished& before, const Finished& after, double share,
                           const std::string& what) {
  expect_learned(after.result.loss, share, what);
  ASSERT_EQ(before.weights.size(), after.weights.size()) << what;
  for (std::size_t p = 0; p < after.weights.size(); ++p) {
    EXPECT_NE(before.weights[p], after.weights[p]) << what << ", parameter " << p;
  }
}

// Stages 0 to 3 with and without overlap and recomputation, and what else must not change a bit.
inline std::vector<Strategy> variants(DType dtype) {
  std::vector<Strategy> all;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool overlap : {false, true}) {
      Strategy s = strategy(stage, dtype);
      s.zero.overlap_comm = overlap;
      all.push_back(s);
      s.recompute.mode = RecomputeMode::full;
      s.name += " recompute";
      all.push_back(s);
    }
  }
  Strategy s = strategy(3, dtype);
  s.zero.overlap_comm = true;
  s.zero.param_persistence_threshold = 100;
  s.name = "zero-3 persistent";
  all.push_back(s);
  s.zero.max_reuse_distance = 1'000'000'000;
  s.name = "zero-3 reuse";
  all.push_back(s);
  s = strategy(3, dtype);
  s.recompute.mode = RecomputeMode::every_k;
  s.recompute.every = 2;
  s.name = "zero-3 every 2";
  all.push_back(s);
  s = strategy(1, dtype);
  s.recompute.mode = RecomputeMode::selective;
  s.recompute.attention = s.recompute.activation = true;
  s.name = "zero-1 selective";
  all.push_back(s);
  s = strategy(3, dtype);
  s.recompute = {.mode = RecomputeMode::selective, .products = true};
  s.name = "zero-3 products";
  all.push_back(s);
  s = strategy(2, dtype);
  s.zero.reduce_bucket_size = 1'000'000;
  s.name = "zero-2 one bucket";
  all.push_back(s);
  return all;
}

// Stages 1 to 3 with what they can move off the device.
inline std::vector<Strategy> offload_variants(DType dtype) {
  std::vector<Strategy> all;
  for (int stage = 1; stage <= 3; ++stage) {
    for (const bool overlap : {false, true}) {
      Strategy s = strategy(stage, dtype);
      s.zero.overlap_comm = overlap;
      s.offload.optimizer = Tier::cpu;
      s.offload.sub_group_size = 5000;
      s.name += " optimizer cpu";
      all.push_back(s);
      s.offload.ratio = 0.5;
      s.name += " half";
      all.push_back(s);
      s.offload.optimizer = Tier::nvme;
      s.offload.nvme_path = testing::TempDir();
      s.offload.aio.block_size = 4096;
      s.name += " on nvme";
      all.push_back(s);
      s.offload.pipeline_read = s.offload.pipeline_write = true;
      s.offload.ratio = 1;
      s.name = "zero-" + std::to_string(stage) + " optimizer nvme pipelined";
      all.push_back(s);
      if (stage < 3) continue;
      s.offload.parameters = Tier::nvme;
      s.offload.max_in_cpu = 0;
      s.name += " parameters nvme";
      all.push_back(s);
      s.offload.ratio = 0.5;
      s.offload.max_in_cpu = 8000;
      s.offload.parameter_buffer_count = 1;
      s.name += " some cpu, some device";
      all.push_back(s);
      s = strategy(3, dtype);
      s.zero.overlap_comm = overlap;
      s.offload.optimizer = Tier::cpu;
      s.offload.sub_group_size = 5000;
      s.offload.ratio = 0.5;
      s.offload.parameters = Tier::cpu;
      s.name += " optimizer half cpu, parameters cpu";
      all.push_back(s);
      s.offload.ratio = 1;
      s.offload.pin_memory = false;
      s.zero.param_persistence_threshold = 100;
      s.recompute.mode = RecomputeMode::full;
      s.offload.activations = true;
      s.name = "zero-3 all cpu persistent recompute";
      all.push_back(s);
    }
  }
  for (const bool overlap : {false, true}) {
    Strategy s = strategy(0, dtype);
    s.zero.overlap_comm = overlap;
    s.offload.activations = true;
    s.recompute.mode = RecomputeMode::full;
    s.name = "zero-0 recompute, activations cpu";
    all.push_back(s);
    s.recompute.mode = RecomputeMode::every_k;
    s.recompute.every = 2;
    s.name = "zero-0 every 2, activations cpu";
    all.push_back(s);
    s.recompute.mode = RecomputeMode::automatic;
    s.recompute.blocks = 1;
    s.name = "zero-0 one recomputed, activations cpu";
    all.push_back(s);
  }
  return all;
}

// Ledger, reserved bytes, wire bytes, op counts and order.
inline void expect_twins(const RunResult& real, const RunResult& twin, const std::string& what) {
  EXPECT_EQ(real.peak_device.tag, twin.peak_device.tag) << what;
  EXPECT_EQ(real.peak_host.tag, twin.peak_host.tag) << what;
  EXPECT_EQ(real.peak_nvme.tag, twin.peak_nvme.tag) << what;
  EXPECT_EQ(real.reserved_device, twin.reserved_device) << what;
  EXPECT_EQ(real.wire_bytes_per_step, twin.wire_bytes_per_step) << what;
  EXPECT_EQ(real.op_count, twin.op_count) << what;
  EXPECT_EQ(real.op_sequence_hash, twin.op_sequence_hash) << what;
  ASSERT_EQ(real.communication.size(), twin.communication.size()) << what;
  for (std::size_t i = 0; i < real.communication.size(); ++i) {
    EXPECT_EQ(real.communication[i].collective, twin.communication[i].collective) << what;
    if (real.communication[i].group == "tiers") {
      EXPECT_EQ(real.communication[i].link, twin.communication[i].link) << what;
    }
    EXPECT_EQ(real.communication[i].group, twin.communication[i].group) << what;
    EXPECT_EQ(real.communication[i].axis, twin.communication[i].axis) << what;
    EXPECT_EQ(real.communication[i].count, twin.communication[i].count) << what;
    EXPECT_EQ(real.communication[i].bytes, twin.communication[i].bytes) << what;
  }
}

}  // namespace zl::test
