// Runs on meshes of ranks: executed with their final weights, and recorded on every rank.
// Ownership: values. Threads: one test.
#pragma once

#include <map>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "tests/engine/comparisons.h"

namespace zl::test {

struct MeshRun {
  std::vector<RunResult> ranks;
  std::vector<Trace> traces;
  std::map<std::string, std::vector<float>> weights;  // by name, from the ranks that have them

  const RunResult& result() const { return ranks.front(); }
};

// Of the ranks that `world` runs; of the CPU's with their final weights.
inline MeshRun run_ranks(World& world, const ModelConfig& model, const Strategy& strategy,
                         ProgramOptions options) {
  options.sequence_length = model.max_sequence;
  const TokenSource data = learnable_tokens(model.vocab);
  const bool real = world.executed_ranks() == world.ranks();
  MeshRun finished;
  finished.ranks.resize(world.ranks());
  finished.traces.resize(world.ranks());
  std::mutex mutex;
  world.run([&](RankHandle handle) {
    ProgramOptions mine = options;
    std::map<std::string, std::vector<float>> weights;
    mine.at_end = [&](Engine& engine) {
      for (int p = 0; real && p < static_cast<int>(engine.parameters().specs.size()); ++p) {
        weights[engine.parameters().specs[p].name] = engine.gather_parameter(p);
      }
    };
    RankOutcome outcome = run_rank(handle, model, strategy, data, mine);
    const std::lock_guard lock(mutex);
    finished.ranks[handle.communicator.rank()] = std::move(outcome.result);
    finished.traces[handle.communicator.rank()] = std::move(outcome.trace);
    for (auto& [name, values] : weights) {
      const auto [at, fresh] = finished.weights.emplace(name, values);
      EXPECT_TRUE(fresh || at->second == values) << name << ": two ranks differ";
    }
  });
  return finished;
}

inline MeshRun run_mesh(int ranks, const ModelConfig& model, const Strategy& strategy,
                        std::int64_t count = 4) {
  return run_ranks(*cpu::make_world({.ranks = ranks}), model, strategy, steps(count));
}

// Every rank, one after the other, on the recording device.
inline MeshRun record_mesh(int ranks, const ModelConfig& model, const Strategy& strategy,
                           std::int64_t count = 4) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  const auto world = sim::make_world(
      {.ranks = ranks}, {.mesh = mesh_of(strategy, ranks), .recorded = std::move(all)});
  return run_ranks(*world, model, strategy, steps(count));
}

inline void expect_same_bits(const MeshRun& a, const MeshRun& b, const std::string& what) {
  EXPECT_EQ(a.result().loss, b.result().loss) << what;
  EXPECT_EQ(a.result().grad_norm, b.result().grad_norm) << what;
  EXPECT_TRUE(a.weights == b.weights) << what << ": final weights differ";
}

// Equal but for the order of sums: losses and norms of every step, weights to a share of the
// largest. Not of the biases of keys, which softmax does not see: their gradients are nothing but
// rounding, and Adam steps as far by them as by any.
inline void expect_close(const MeshRun& a, const MeshRun& b, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(a.result().loss.size(), b.result().loss.size()) << what;
  for (std::size_t i = 0; i < a.result().loss.size(); ++i) {
    EXPECT_NEAR(a.result().loss[i], b.result().loss[i], tolerance * a.result().loss[i])
        << what << ", step " << i;
    EXPECT_NEAR(a.result().grad_norm[i], b.result().grad_norm[i],
                20 * tolerance * a.result().grad_norm[i])
        << what << ", step " << i;
  }
  for (const auto& [name, values] : a.weights) {
    if (name.find("qkv.bias") != std::string::npos) continue;
    const auto other = b.weights.find(name);
    ASSERT_TRUE(other != b.weights.end() && other->second.size() == values.size())
        << what << ": " << name;
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      apart = std::max(apart, std::abs(static_cast<double>(values[i]) - other->second[i]));
    }
    EXPECT_LE(apart, 100 * tolerance * largest) << what << ": " << name;
  }
}

// Why a run is Error{invalid}; "accepted" where it is not.
inline std::string mesh_refusal(int ranks, const ModelConfig& model, const Strategy& strategy) {
  try {
    run_mesh(ranks, model, strategy);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "accepted";
}

}  // namespace zl::test
