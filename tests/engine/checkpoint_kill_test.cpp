// A run is killed, or its disk fails it, at each operation on its files in turn: the next goes on
// from the step before or the one that was being kept, never from nothing, and ends with the same
// bits.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/base/files.h"
#include "tests/engine/checkpoints.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 2;
constexpr std::int64_t kAll = 3;

// Shared with the child.
struct Progress {
  std::atomic<int> left{0};           // operations until the one that is not done
  std::atomic<std::int64_t> step{0};  // that rank 0 has taken
};
Progress* g_progress = nullptr;

bool is_the_one() { return g_progress->left.fetch_sub(1) == 1; }
int kill_at_the_one() {
  if (is_the_one()) raise(SIGKILL);
  return 0;
}
int fail_at_the_one() { return is_the_one() ? ENOSPC : 0; }

Strategy plain_sgd() {
  Strategy s = strategy(1);
  s.optimizer.kind = OptimizerKind::sgd;  // the fewest tensors, so the fewest writes
  return s;
}

// Every step is kept, so the third removes the first.
ProgramOptions watched(const std::string& folder) {
  ProgramOptions options = kept_in(folder, kAll, 1);
  options.on_step = [](std::int64_t step, const StepMetrics&, double) { g_progress->step = step; };
  return options;
}

class InterruptedCheckpoint : public testing::Test {
 protected:
  InterruptedCheckpoint() : whole_(run_cpu(kRanks, smallest_gpt2(), plain_sgd(), steps(kAll))) {
    void* shared = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_progress = new (shared) Progress;
  }
  ~InterruptedCheckpoint() override { ::munmap(g_progress, sizeof(Progress)); }

  // With `fault` at operation `n` of its files; false where it has fewer.
  static bool run_with(FileFault fault, int n, const std::string& folder) {
    g_progress->left = n;
    g_progress->step = 0;
    set_file_fault(fault);
    failure_of(kRanks, smallest_gpt2(), plain_sgd(), watched(folder));
    set_file_fault(nullptr);
    return g_progress->left <= 0;
  }

  static bool killed_at(int n, const std::string& folder) {
    const pid_t child = ::fork();
    if (child == 0) {
      run_with(&kill_at_the_one, n, folder);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }

  void expect_goes_on(const std::string& folder, const std::string& what) {
    const std::int64_t kept = std::max<std::int64_t>(0, g_progress->step - 1);
    const std::int64_t done = newest_step(folder);
    EXPECT_TRUE(done == kept || done == kept + 1) << what << ": " << done << " after " << kept;
    if (done == kAll) return;
    const Finished rest = run_cpu(kRanks, smallest_gpt2(), plain_sgd(), kept_in(folder, kAll, 1));
    EXPECT_EQ(rest.result.first_step, done) << what;
    EXPECT_EQ(rest.weights, whole_.weights) << what;
    for (std::size_t i = 0; i < rest.result.loss.size(); ++i) {
      EXPECT_EQ(rest.result.loss[i], whole_.result.loss[static_cast<std::size_t>(done) + i]);
    }
    EXPECT_EQ(names_in(folder), (std::vector<std::string>{"step-00000002", "step-00000003"}))
        << what;
    EXPECT_EQ(names_in(folder + "/step-00000003"),
              (std::vector<std::string>{"manifest.safetensors", "rank-0-of-2.safetensors",
                                        "rank-1-of-2.safetensors"}))
        << what << ": something is left behind";
  }

  Finished whole_;
};

TEST_F(InterruptedCheckpoint, AKillAtAnyOperationLeavesTheOldStateOrTheNew) {
  int n = 1;
  for (bool was_killed = true; was_killed; ++n) {
    const TempFolder folder(in_memory());
    const std::string run = (folder / "run").string();
    was_killed = killed_at(n, run);
    expect_goes_on(run, "killed at operation " + std::to_string(n));
  }
  EXPECT_GT(n, 80) << "the run has hardly written";
}

TEST_F(InterruptedCheckpoint, AFailureOfAnyOperationLeavesTheOldStateOrTheNew) {
  int n = 1;
  for (bool has_failed = true; has_failed; ++n) {
    const TempFolder folder(in_memory());
    const std::string run = (folder / "run").string();
    has_failed = run_with(&fail_at_the_one, n, run);
    expect_goes_on(run, "failed at operation " + std::to_string(n));
  }
  EXPECT_GT(n, 80) << "the run has hardly written";
}

// It puts the damaged step aside and writes it anew.
TEST_F(InterruptedCheckpoint, AKillOfARunThatGoesBackAStepLosesNoOther) {
  const Finished whole = run_cpu(kRanks, smallest_gpt2(), plain_sgd(), steps(kAll + 1));
  const TempFolder source(in_memory());
  run_with(&fail_at_the_one, 0, source.path().string());  // none fails
  fs::resize_file(checkpoint_file(source.path().string(), kAll, 1, kRanks), 1000);
  int n = 1;
  for (bool was_killed = true; was_killed; ++n) {
    const TempFolder folder(in_memory());
    const std::string run = (folder / "run").string();
    fs::copy(source.path(), run, fs::copy_options::recursive);
    was_killed = killed_at(n, run);
    const Finished rest = run_cpu(kRanks, smallest_gpt2(), plain_sgd(), kept_in(run, kAll + 1, 1));
    EXPECT_GE(rest.result.first_step, kAll - 1) << "killed at operation " << n;
    EXPECT_EQ(rest.weights, whole.weights) << "killed at operation " << n;
  }
  EXPECT_GT(n, 20) << "the run has hardly written";
}

}  // namespace
}  // namespace zl::test
