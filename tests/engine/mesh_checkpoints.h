// Runs on meshes that keep checkpoints, resumed on the same mesh or on another.
// Ownership: values. Threads: one test.
#pragma once

#include "tests/engine/checkpoints.h"
#include "tests/engine/mesh_runs.h"

namespace zl::test {

inline constexpr std::int64_t kAll = 6, kDone = 4;

inline MeshRun run_kept(int ranks, const ModelConfig& model, const Strategy& s,
                        const std::string& folder, std::int64_t count) {
  return run_ranks(*cpu::make_world({.ranks = ranks}), model, s, kept_in(folder, count));
}

inline void expect_resumes(int ranks, const ModelConfig& model, const Strategy& s,
                           const std::string& what) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const MeshRun whole = run_mesh(ranks, model, s, kAll);
  run_kept(ranks, model, s, run, kDone);
  EXPECT_EQ(newest_step(run), kDone) << what;
  const MeshRun rest = run_kept(ranks, model, s, run, kAll);
  const std::vector<double>& loss = whole.result().loss;
  EXPECT_EQ(rest.result().loss, std::vector<double>(loss.begin() + kDone, loss.end())) << what;
  EXPECT_TRUE(rest.weights == whole.weights) << what << ": final weights differ";
}

// What a run on another mesh hears that is to go on there.
inline std::string mesh_refusal(int ranks, const ModelConfig& model, const Strategy& s,
                                const std::string& folder) {
  try {
    run_kept(ranks, model, s, folder, kAll);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "accepted";
}

}  // namespace zl::test
