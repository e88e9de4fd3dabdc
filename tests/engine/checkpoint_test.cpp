// A run that is resumed ends with the bits of the run that was never interrupted.
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "tests/engine/comparisons.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAll = 8;
constexpr int kRanks = 3;

ProgramOptions kept_in(const std::string& folder, std::int64_t count) {
  ProgramOptions options = steps(count);
  options.checkpoint = {folder, 2, true, "tests"};
  return options;
}

// The run's last steps from a checkpoint after `done` steps, against those of `whole`.
void expect_resumes(const Strategy& s, const Finished& whole, std::int64_t done) {
  const TempFolder folder;
  const std::string what = s.name + " from step " + std::to_string(done);
  run_cpu(kRanks, tiny_gpt2(), s, kept_in((folder / "run").string(), done));
  EXPECT_EQ(newest_checkpoint((folder / "run").string(), kRanks), done) << what;
  const Finished rest = run_cpu(kRanks, tiny_gpt2(), s, kept_in((folder / "run").string(), kAll));
  ASSERT_EQ(rest.result.loss.size(), static_cast<std::size_t>(kAll - done)) << what;
  for (std::size_t i = 0; i < rest.result.loss.size(); ++i) {
    const std::size_t before = static_cast<std::size_t>(done) + i;
    EXPECT_EQ(rest.result.loss[i], whole.result.loss[before]) << what << ", step " << before + 1;
    EXPECT_EQ(rest.result.learning_rate[i], whole.result.learning_rate[before]) << what;
    EXPECT_EQ(rest.result.loss_scale[i], whole.result.loss_scale[before]) << what;
  }
  EXPECT_EQ(rest.weights, whole.weights) << what;
}

void expect_resumes(const Strategy& s, std::initializer_list<std::int64_t> after) {
  const Finished whole = run_cpu(kRanks, tiny_gpt2(), s, steps(kAll));
  for (const std::int64_t done : after) expect_resumes(s, whole, done);
}

TEST(Checkpoint, EveryStageResumesWithTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (int stage = 0; stage <= 3; ++stage) {
      Strategy s = strategy(stage, dtype);
      s.overlap_comm = stage % 2 == 1;
      s.gradient_accumulation = 2;
      s.schedule.kind = ScheduleKind::warmup_decay_lr;
      s.schedule.warmup_num_steps = 4;
      s.schedule.total_num_steps = kAll;
      s.loss_scaler.initial_scale_power = 20;  // fp16: some steps overflow
      if (stage == 3) s.param_persistence_threshold = 100;
      if (stage == 2 && dtype == DType::bf16) s.stochastic_rounding = true;
      expect_resumes(s, {5});
    }
  }
}

TEST(Checkpoint, OptimizersResumeWithTheSameBits) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lamb}) {
    Strategy s = strategy(1, DType::bf16);
    s.name = kind == OptimizerKind::sgd ? "sgd" : "lamb";
    s.optimizer.kind = kind;
    s.optimizer.momentum = 0.9;
    expect_resumes(s, {5});
  }
}

// The checkpoints lie before, at and after the freeze; the errors of both sides are part of them.
TEST(Checkpoint, OnebitOptimizersResumeWithTheSameBits) {
  const OptimizerKind kinds[] = {OptimizerKind::onebit_adam, OptimizerKind::zero_one_adam,
                                 OptimizerKind::onebit_lamb};
  for (const OptimizerKind kind : kinds) {
    for (int stage = 0; stage <= (kind == OptimizerKind::onebit_adam ? 1 : 0); ++stage) {
      Strategy s = strategy(stage, DType::bf16);
      s.name =
          "onebit " + std::to_string(static_cast<int>(kind)) + " zero-" + std::to_string(stage);
      s.optimizer.kind = kind;
      s.optimizer.lr = 3e-3;
      s.optimizer.onebit.freeze_step = 4;
      s.optimizer.onebit.var_freeze_step = 4;
      s.optimizer.onebit.local_step_scaler = 2;
      expect_resumes(s, {1, 4, 6});
    }
  }
}

TEST(Checkpoint, OffloadedStateResumesWithTheSameBits) {
  for (const Strategy& s : offload_variants(DType::bf16)) {
    const bool has_state_there = s.offload.optimizer != Tier::device;
    if (s.overlap_comm || !has_state_there) continue;
    expect_resumes(s, {4});
  }
}

std::string error_of(const Strategy& s, const ProgramOptions& options) {
  try {
    run_cpu(kRanks, tiny_gpt2(), s, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Before, at and after the first delayed update: pending updates are part of the checkpoint.
TEST(Checkpoint, DelayedUpdatesResumeWithTheSameBits) {
  for (const Tier tier : {Tier::cpu, Tier::nvme}) {
    Strategy s = strategy(tier == Tier::cpu ? 2 : 3, DType::bf16);
    s.name = tier == Tier::cpu ? "delayed" : "delayed from files";
    s.offload.optimizer = tier;
    s.offload.nvme_path = testing::TempDir();
    s.offload.aio.block_size = 4096;
    s.offload.sub_group_size = 5000;
    s.offload.delayed_update_after = 2;
    expect_resumes(s, {1, 2, 3, 5});
  }
}

TEST(Checkpoint, TheNewestTwoAreKeptAndAnIncompleteOneIsPassedOver) {
  const TempFolder folder;
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(1);
  const Finished whole = run_cpu(kRanks, tiny_gpt2(), s, steps(kAll));
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 7));
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(run)) {
    kept.push_back(entry.path().filename().string());
  }
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, (std::vector<std::string>{"step-00000006", "step-00000007"}));
  fs::remove(fs::path(run) / "step-00000007" / "rank-1-of-3.safetensors");
  EXPECT_EQ(newest_checkpoint(run, kRanks), 6);
  EXPECT_EQ(newest_checkpoint(run, 2), 0) << "of another number of ranks";
  const Finished rest = run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, kAll));
  EXPECT_EQ(rest.result.steps, kAll - 6);
  ASSERT_EQ(rest.result.warnings.size(), 1u);
  EXPECT_EQ(rest.result.warnings[0], "resumed after step 6 from " + run);
  EXPECT_EQ(rest.weights, whole.weights);
}

TEST(Checkpoint, DamageAndStrangersAreNamed) {
  const TempFolder folder;
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(2);
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 3));
  EXPECT_NE(error_of(s, kept_in(run, 3)).find("nothing is left to resume"), std::string::npos);
  ProgramOptions other = kept_in(run, kAll);
  other.checkpoint.identity = "another model";
  EXPECT_NE(error_of(s, other).find("of another model, strategy"), std::string::npos);
  const fs::path file = fs::path(run) / "step-00000003" / "rank-0-of-3.safetensors";
  fs::resize_file(file, fs::file_size(file) - 8);
  const std::string damaged = error_of(s, kept_in(run, kAll));
  EXPECT_NE(damaged.find("rank-0-of-3.safetensors"), std::string::npos) << damaged;
  std::ofstream(folder / "file") << "not a folder";
  EXPECT_NE(error_of(s, kept_in((folder / "file").string(), 2))
                .find("choose another --checkpoint folder"),
            std::string::npos);
}

}  // namespace
}  // namespace zl::test
