// A run that is resumed ends with the bits of the run that was never interrupted.
#include <cmath>
#include <fstream>

#include "tests/engine/checkpoints.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAll = 8;
constexpr int kRanks = 3;

// The run's last steps from a checkpoint after `done` steps, against those of `whole`.
void expect_resumes(const Strategy& s, const Finished& whole, std::int64_t done) {
  const TempFolder folder(in_memory());
  const std::string what = s.name + " from step " + std::to_string(done);
  run_cpu(kRanks, tiny_gpt2(), s, kept_in((folder / "run").string(), done));
  EXPECT_EQ(newest_step((folder / "run").string()), done) << what;
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
      s.zero.overlap_comm = stage % 2 == 1;
      s.gradient_accumulation = 2;
      s.schedule.kind = ScheduleKind::warmup_decay_lr;
      s.schedule.warmup_num_steps = 4;
      s.schedule.total_num_steps = kAll;
      s.loss_scaler.initial_scale_power = 20;  // fp16: some steps overflow
      if (stage == 3) s.zero.param_persistence_threshold = 100;
      if (stage == 2 && dtype == DType::bf16) s.precision.stochastic_rounding = true;
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
    if (s.zero.overlap_comm || !has_state_there) continue;
    expect_resumes(s, {4});
  }
}

std::string error_of(const Strategy& s, const ProgramOptions& options) {
  return failure_of(kRanks, tiny_gpt2(), s, options);
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

// Flips bits in the middle of a file's data.
void damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  std::string bytes(64, '\0');
  file.seekg(middle).read(bytes.data(), 64);
  for (char& byte : bytes) byte = static_cast<char>(~byte);
  file.seekp(middle).write(bytes.data(), 64);
}

TEST(Checkpoint, TheNewestTwoAreKeptAndADamagedOneIsPassedOverAloud) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(3);
  const Finished whole = run_cpu(kRanks, tiny_gpt2(), s, steps(kAll));
  const Finished first = run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 7));
  ASSERT_EQ(first.result.warnings.size(), 1u);
  EXPECT_HAS(first.result.warnings[0], "holds no checkpoint yet");
  EXPECT_EQ(names_in(run), (std::vector<std::string>{"step-00000006", "step-00000007"}));
  const std::string newest = checkpoint_file(run, 7, 1, kRanks);
  damage(newest);
  const Finished rest = run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, kAll));
  EXPECT_EQ(rest.result.steps, kAll - 6);
  EXPECT_EQ(rest.result.first_step, 6);
  ASSERT_EQ(rest.result.warnings.size(), 2u);
  EXPECT_EQ(rest.result.warnings[0], "resumed after step 6 from " + run);
  EXPECT_HAS(rest.result.warnings[1], "step 7 was passed over and is kept as " + run +
                                          "/step-00000007.passed-over: " + newest + ": ");
  EXPECT_EQ(rest.weights, whole.weights);
}

TEST(Checkpoint, AFolderOfOtherRanksIsNotStartedAnew) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(2);
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 1));
  const std::vector<std::string> files = names_in(run + "/step-00000001");
  try {
    run_cpu(2, tiny_gpt2(), s, kept_in(run, kAll));
    ADD_FAILURE() << "three ranks were resumed by two";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_HAS(std::string(error.what()), "its ranks is 3, not 2");
  }
  EXPECT_EQ(names_in(run + "/step-00000001"), files);
}

TEST(Checkpoint, AFreshRunLeavesTheCheckpointsOfAnotherAlone) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(3);
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 6));
  const std::vector<std::string> before = names_in(run);
  ProgramOptions fresh = kept_in(run, 4);
  fresh.checkpoint.resume = false;
  const std::string refused = error_of(s, fresh);
  EXPECT_HAS(refused, run + ": holds checkpoints already");
  EXPECT_HAS(refused, "--resume");
  EXPECT_EQ(names_in(run), before);
}

TEST(Checkpoint, TwoRunsDoNotShareAFolder) {
  const TempFolder folder(in_memory());
  const Strategy s = strategy(1);
  {
    const FolderLock other(folder.path().string());
    const std::string refused = error_of(s, kept_in(folder.path().string(), 2));
    EXPECT_HAS(refused, folder.path().string() + ": another run is writing");
    EXPECT_TRUE(names_in(folder.path().string()).empty());
  }
  EXPECT_EQ(error_of(s, kept_in(folder.path().string(), 2)), "");
}

TEST(Checkpoint, AResumedRunNamesTheStepWhoseLossWasLost) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  Strategy s = strategy(1);
  s.optimizer.lr = 1e38;
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 1));
  ProgramOptions options = kept_in(run, 4);
  options.keep_going = true;
  const Finished rest = run_cpu(kRanks, tiny_gpt2(), s, options);
  ASSERT_FALSE(std::isfinite(rest.result.loss[0])) << "one update is enough";
  EXPECT_EQ(rest.result.warnings.back(), "the loss is not finite since step 2");
}

TEST(Checkpoint, ALostRunKeepsTheStateFromBefore) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  Strategy s = strategy(1);
  s.optimizer.lr = 1e38;
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 1));
  const Finished rest = run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 4));
  EXPECT_EQ(rest.result.outcome, Outcome::failed);
  EXPECT_HAS(rest.result.message, "not finite at step 2");
  EXPECT_EQ(rest.result.steps, 1);
  EXPECT_EQ(newest_step(run), 1);
}

// As one does that is started again until it succeeds.
TEST(Checkpoint, ARunThatIsDoneEndsAtOnceWithItsState) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(2);
  const Finished whole = run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 3));
  const Finished again = run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 3));
  EXPECT_EQ(again.result.outcome, Outcome::ok);
  EXPECT_EQ(again.result.first_step, 3);
  EXPECT_EQ(again.result.steps, 0);
  EXPECT_EQ(again.weights, whole.weights);
  EXPECT_EQ(again.result.warnings.back(), "all 3 steps are done already");
}

TEST(Checkpoint, StrangersAreNamed) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const Strategy s = strategy(2);
  run_cpu(kRanks, tiny_gpt2(), s, kept_in(run, 3));
  EXPECT_HAS(error_of(s, kept_in(run, 2)), "step 3 is done already, and 2 are asked for");
  ProgramOptions other = kept_in(run, kAll);
  other.checkpoint.identity["run"] = "another";
  EXPECT_HAS(error_of(s, other), "its run is tests, not another");
  other.checkpoint.identity = {};
  EXPECT_HAS(error_of(s, other), "its run is tests, of which this run has none");
  other.checkpoint.identity = {{"run", "tests"}, {"data", "text"}};
  EXPECT_HAS(error_of(s, other), "it does not say its data");
  other = kept_in(run, kAll);
  other.checkpoint.identity[kProgram] = "a later one";
  EXPECT_EQ(error_of(s, other), "") << "what wrote it does not matter";
  other.checkpoint.identity["strategy/zero_optimization/offload_optimizer/nvme_path"] = "/there";
  EXPECT_EQ(error_of(s, other), "") << "nor where its files were";
  std::ofstream(folder / "file") << "not a folder";
  EXPECT_HAS(error_of(s, kept_in((folder / "file").string(), 2)), "file: cannot make the folder");
}

// What the ranks tell each other about it is no work of the run's.
TEST(Checkpoint, KeepingStateDoesNotChangeTheBooks) {
  const TempFolder folder(in_memory());
  const Strategy s = strategy(2);
  const Finished without = run_cpu(kRanks, tiny_gpt2(), s, steps(4));
  const Finished with = run_cpu(kRanks, tiny_gpt2(), s, kept_in((folder / "run").string(), 4, 1));
  EXPECT_EQ(with.result.op_count, without.result.op_count);
  EXPECT_EQ(with.result.wire_bytes_per_step, without.result.wire_bytes_per_step);
  EXPECT_EQ(with.result.peak_device.tag, without.result.peak_device.tag);
}

}  // namespace
}  // namespace zl::test
