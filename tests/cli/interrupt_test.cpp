// Ctrl-C in mid-run, and what else ends one early.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "results/store.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

TEST(Interrupt, FinishedStrategiesAreStoredAndPrinted) {
  const Home home;
  // The simulator finishes at once whatever the steps; the real run behind it does not.
  Program program(home, {"run", data_file("tiny.json"), "--backend", "sim,cpu", "--strategy",
                         "zero-2", "--steps", "20000", "--verbose", "-o", "json"});
  ASSERT_TRUE(program.wait_for_message("zero-2 on cpu: step 2 "));
  program.send(SIGINT);
  const Output output = program.finish();
  EXPECT_EQ(output.code, 130) << output.err;
  const Json runs = Json::parse(output.out);
  EXPECT_EQ(runs[0]["results"][0]["outcome"], "ok");
  EXPECT_EQ(runs[1]["results"][0]["outcome"], "interrupted");
  EXPECT_CONTAINS(runs[1]["results"][0]["message"].get<std::string>(), "interrupted after");
  EXPECT_GE(runs[1]["results"][0]["loss"].size(), 2u);
  Store store = Store::open(home.path("zerolab/results.db"), Store::Mode::read_only);
  const auto stored = store.list();
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[1].backend, "sim");
  EXPECT_EQ(stored[1].outcome, Outcome::ok);
  // What was interrupted is kept with its steps, and marked.
  EXPECT_EQ(stored[0].backend, "cpu");
  EXPECT_EQ(stored[0].outcome, Outcome::interrupted);
  EXPECT_EQ(stored[0].planned_steps, 20000);
  const RunResult kept = store.load(stored[0].id);
  EXPECT_EQ(kept.loss.size(), runs[1]["results"][0]["loss"].size());
  EXPECT_EQ(kept.steps, stored[0].steps);
  EXPECT_EQ(runs[1]["results"][0]["run_id"], stored[0].id);
}

TEST(Interrupt, AResumedRunCountsFromTheFirstStepOfAll) {
  const Home home;
  const auto arguments = [&](const std::string& steps) {
    return std::vector<std::string>{"run",          data_file("tiny.json"),
                                    "--backend",    "cpu",
                                    "--strategy",   "zero-2",
                                    "--steps",      steps,
                                    "--checkpoint", home.path("ck"),
                                    "--resume",     "--verbose",
                                    "-o",           "json"};
  };
  const Output begun = zerolab(home, arguments("8"));
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_CONTAINS(begun.err, "holds no checkpoint yet");
  Program program(home, arguments("20000"));
  ASSERT_TRUE(program.wait_for_message("zero-2 on cpu: step 9 "));
  program.send(SIGINT);
  const Output output = program.finish();
  EXPECT_EQ(output.code, 130) << output.err;
  const Json result = Json::parse(output.out)["results"][0];
  EXPECT_EQ(result["first_step"], 8);
  const std::int64_t last = 8 + result["steps"].get<std::int64_t>();
  EXPECT_EQ(result["message"], "interrupted after " + std::to_string(last) + " of 20000 steps");
}

TEST(Interrupt, TrainingGoesOnFromItsCheckpoint) {
  const Home home;
  const auto arguments = [&](const char* steps) {
    return std::vector<std::string>{
        "train",        data_file("tiny.json"), "--strategy", "zero-2", "--steps", steps,
        "--checkpoint", home.path("ck"),        "--resume",   "-o",     "json"};
  };
  Program program(home, arguments("20000"));
  ASSERT_TRUE(program.wait_for_message("    2/20000  loss"));
  program.send(SIGINT);
  const Output cut = program.finish();
  EXPECT_EQ(cut.code, 130) << cut.err;
  EXPECT_CONTAINS(cut.err, "the same command with --resume goes on");
  const std::int64_t taken = Json::parse(cut.out)["results"][0]["steps"];
  const std::string last = std::to_string(taken + 3);
  const Output rest = zerolab(home, arguments(last.c_str()));
  EXPECT_EQ(rest.code, 0) << rest.err;
  const Json result = Json::parse(rest.out)["results"][0];
  EXPECT_EQ(result["first_step"], taken);
  EXPECT_EQ(result["steps"], 3);
  EXPECT_CONTAINS(refused(home,
                          {"train", data_file("tiny.json"), "--backend", "sim", "--checkpoint",
                           home.path("sim")},
                          2),
                  "--checkpoint: the simulator has no state");
}

// As a full disk would.
TEST(Interrupt, AFileSizeLimitInASaveIsAnErrorThatLeavesNothing) {
  const Home home;
  const std::string folder = home.path("saved");
  std::filesystem::create_directories(folder);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit below_the_weights{256 << 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &below_the_weights);
  const Output output = zerolab(home, {"train", data_file("tiny.json"), "--strategy", "zero-0",
                                       "--save", folder + "/weights.safetensors"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(output.code, 1) << output.err;
  EXPECT_CONTAINS(output.err, "weights.safetensors: cannot write: File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Interrupt, MeasuringADiskLeavesNoFiles) {
  const Home home;
  const std::string folder = home.path("disk");
  std::filesystem::create_directory(folder);
  Program program(home, {"bench", "nvme", folder, "--verbose"});
  ASSERT_TRUE(program.wait_for_message("measured 1 of "));
  program.send(SIGINT);
  const Output output = program.finish();
  EXPECT_EQ(output.code, 130) << output.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Interrupt, TrainingKeepsItsWeights) {
  const Home home;
  const std::string weights = home.path("weights.safetensors");
  Program program(
      home, {"train", data_file("tiny.json"), "--steps", "20000", "-o", "csv", "--save", weights});
  ASSERT_TRUE(program.wait_for_message("    2/20000  loss"));
  program.send(SIGTERM);
  EXPECT_EQ(program.finish().code, 130);
  EXPECT_TRUE(std::filesystem::exists(weights));
}

}  // namespace
}  // namespace zl::cli_test
