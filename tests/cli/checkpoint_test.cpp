// `zerolab run --checkpoint` as people meet it: killed jobs that are started again, signals, other
// data, and data that is no file.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/checkpoint/safetensors.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> run_of(const Home& home, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "run",     data_file("tiny.json"), "--strategy",    "zero-2", "--backend", "cpu",
      "--no-db", "--checkpoint",         home.path("ck"), "-o",     "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string step_of(const Home& home, const std::string& step) {
  return home.path("ck/zero-2/step-" + step);
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Checkpoint, AJobThatWasKilledOverItsFirstStepStartsAnew) {
  for (const std::string resume : {"--resume", "--verbose"}) {
    const Home home;
    fs::create_directories(step_of(home, "00000002"));
    std::ofstream(step_of(home, "00000002") + "/rank-0-of-2.safetensors.tmp12") << "half";
    std::ofstream(step_of(home, "00000002") + "/rank-1-of-2.safetensors") << "whole";
    const Output output = zerolab(home, run_of(home, {resume}));
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_CONTAINS(output.err, "step-00000002: removing it");
    EXPECT_FALSE(fs::exists(step_of(home, "00000002")));
    EXPECT_TRUE(fs::exists(step_of(home, "00000003") + "/manifest.safetensors"));
    EXPECT_EQ(Json::parse(output.out)["results"][0]["first_step"], 0);
  }
}

TEST(Checkpoint, AManifestTellsWhatTheStepIs) {
  const Home home;
  ASSERT_EQ(zerolab(home, run_of(home, {})).code, 0);
  auto labels = read_safetensors(step_of(home, "00000003") + "/manifest.safetensors").metadata;
  EXPECT_EQ(labels["step"], "3");
  EXPECT_EQ(labels["ranks"], "2");
  EXPECT_EQ(labels["seed"], "7");
  EXPECT_EQ(labels["model/family"], "gpt2");
  EXPECT_EQ(labels["strategy/zero_optimization/stage"], "2");
  EXPECT_CONTAINS(labels["data"], " tokens, crc32c ");
  EXPECT_FALSE(labels["program"].empty());
  for (const char* rank : {"0", "1"}) {
    const std::string path =
        step_of(home, "00000003") + "/rank-" + std::string(rank) + "-of-2.safetensors";
    EXPECT_CONTAINS(labels["file of rank " + std::string(rank)],
                    std::to_string(fs::file_size(path)) + " bytes, crc32c ");
    EXPECT_EQ(read_safetensors(path).metadata["rank"], rank);
  }
}

TEST(Checkpoint, ExchangedRankFilesAreNotResumed) {
  const Home home;
  ASSERT_EQ(zerolab(home, run_of(home, {"--steps", "6", "--checkpoint-every", "2"})).code, 0);
  const std::string step = step_of(home, "00000006");
  fs::rename(step + "/rank-0-of-2.safetensors", step + "/kept");
  fs::rename(step + "/rank-1-of-2.safetensors", step + "/rank-0-of-2.safetensors");
  fs::rename(step + "/kept", step + "/rank-1-of-2.safetensors");
  const Output output = zerolab(home, run_of(home, {"--steps", "8", "--resume"}));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_CONTAINS(output.err, "step 6 is passed over: ");
  EXPECT_CONTAINS(output.err, "rank-0-of-2.safetensors: its rank is 1, not 0");
  EXPECT_EQ(Json::parse(output.out)["results"][0]["first_step"], 4);
}

TEST(Checkpoint, WhatDiffersIsNamedWithTheCommandThatClears) {
  const Home home;
  const std::string text = home.file("text", repeated("In the beginning was the word. ", 40));
  ASSERT_EQ(zerolab(home, run_of(home, {"--data", text, "--steps", "2"})).code, 0);
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = run_of(home, {"--steps", "4", "--resume"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refused(home, arguments, 3);
  };
  const std::string seed = refusal({"--data", text, "--seed", "8"});
  EXPECT_CONTAINS(seed, "step 2: ");
  EXPECT_CONTAINS(seed, "its seed is 7, not 8");
  EXPECT_CONTAINS(seed, "rm -r '" + home.path("ck/zero-2") + "'");
  EXPECT_CONTAINS(refusal({"--data", text, "--ranks", "1"}), "its ranks is 2, not 1");
  EXPECT_CONTAINS(refusal({"--data", text, "--micro-batch", "4"}),
                  "its strategy/train_micro_batch_size_per_gpu is ");
  // One letter, in place.
  std::fstream(text, std::ios::in | std::ios::out).seekp(100).put('X');
  EXPECT_CONTAINS(refusal({"--data", text}), "its data is 1240 tokens, crc32c ");
  std::fstream(text, std::ios::in | std::ios::out)
      .seekp(100)
      .put(repeated("In the beginning was the word. ", 4)[100]);
  // The same text elsewhere is the same data.
  const std::string moved = home.path("moved");
  fs::rename(text, moved);
  EXPECT_EQ(zerolab(home, run_of(home, {"--steps", "4", "--resume", "--data", moved})).code, 0);
  EXPECT_CONTAINS(
      refused(home, run_of(home, {"--steps", "4", "--data", moved}), 3),
      "holds checkpoints already (the newest of step 4); go on from them with --resume");
}

TEST(Checkpoint, EverySignalThatAsksForTheEndKeepsTheState) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const Home home;
    Program program(home, run_of(home, {"--steps", "20000", "--verbose"}));
    ASSERT_TRUE(program.wait_for_message("zero-2 on cpu: step 2 "));
    program.send(signal);
    const Output output = program.finish();
    EXPECT_EQ(output.code, 130) << output.err;
    const std::string last =
        std::to_string(Json::parse(output.out)["results"][0]["steps"].get<std::int64_t>());
    EXPECT_TRUE(fs::exists(step_of(home, std::string(8 - last.size(), '0') + last) +
                           "/manifest.safetensors"))
        << "signal " << signal;
  }
}

// As `nohup` has it.
TEST(Checkpoint, AHangUpThatIsIgnoredStaysIgnored) {
  const Home home;
  const auto before = std::signal(SIGHUP, SIG_IGN);
  Program program(home, run_of(home, {"--steps", "20000", "--verbose"}));
  std::signal(SIGHUP, before);
  ASSERT_TRUE(program.wait_for_message("zero-2 on cpu: step 2 "));
  program.send(SIGHUP);
  ASSERT_TRUE(program.wait_for_message("zero-2 on cpu: step 20 "));
  program.send(SIGTERM);
  const Output output = program.finish();
  EXPECT_EQ(output.code, 130) << output.err;
  EXPECT_GE(Json::parse(output.out)["results"][0]["steps"].get<int>(), 20);
}

TEST(Checkpoint, DataIsARegularFile) {
  const Home home;
  for (const std::string name : {"fifo", "fifo.bin"}) {
    const std::string fifo = home.path(name);
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_CONTAINS(refused(home, run_of(home, {"--data", fifo}), 3),
                    fifo + ": is a FIFO, not a regular file");
  }
  EXPECT_CONTAINS(refused(home, run_of(home, {"--data", "/dev/zero"}), 3),
                  "/dev/zero: is a device");
}

TEST(Checkpoint, DataThatShrinksUnderARunIsAnError) {
  const Home home;
  const std::string data = home.file("tokens.bin", std::string(100'000, '\0'));
  Program program(home, run_of(home, {"--data", data, "--steps", "20000", "--verbose"}));
  ASSERT_TRUE(program.wait_for_message("zero-2 on cpu: step 2 "));
  fs::resize_file(data, 1000);
  const Output output = program.finish();
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_CONTAINS(output.err, "tokens.bin: ends after ");
}

TEST(Checkpoint, WeightsAreSavedThroughLinksAndIntoDevices) {
  const Home home;
  const auto save_to = [&](const std::string& path) {
    return zerolab(home, {"train", data_file("tiny.json"), "--no-db", "--save", path});
  };
  fs::create_symlink("weights", home.path("link"));
  fs::create_symlink("/dev/null", home.path("null"));
  fs::create_symlink("/dev/full", home.path("full"));
  EXPECT_EQ(save_to(home.path("link")).code, 0);
  EXPECT_TRUE(fs::is_symlink(home.path("link")));
  EXPECT_TRUE(fs::is_regular_file(home.path("weights")));
  EXPECT_EQ(save_to(home.path("null")).code, 0);
  const Output full = save_to(home.path("full"));
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_CONTAINS(full.err, "full: cannot write: No space left on device");
  EXPECT_TRUE(fs::is_character_file(home.path("full")));
}

}  // namespace
}  // namespace zl::cli_test
