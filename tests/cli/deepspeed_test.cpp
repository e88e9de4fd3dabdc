// DeepSpeed files from the command line: read, written, read again; and how much is said of them.
#include <algorithm>

#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

// As Hugging Face's trainer takes it: everything waits for the run.
constexpr auto kTrainersFile = R"({"bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 12},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
    "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": "auto",
        "offload_param": {"device": "none", "pin_memory": true}, "sub_group_size": 1e9},
    "gradient_accumulation_steps": "auto", "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "steps_per_print": 2000})";

std::size_t lines_with(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(DeepSpeedFile, TrainsTheSameAfterBeingWrittenAgain) {
  const Home home;
  const std::string given = home.file("ds.json", kTrainersFile), written = home.path("ds2.json");
  const Output imported = zerolab(home, {"import", "deepspeed", given, "--save", written});
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(Json::parse(imported.out)["bf16"]["enabled"], "auto");
  for (const char* cluster : {"8xh100", "8xv100"}) {
    Json results[2];
    for (const int i : {0, 1}) {
      const Output run = zerolab(home, {"run", "gpt2-tiny", "--cluster", cluster, "--no-db", "-o",
                                        "json", "--strategy", i == 0 ? given : written});
      ASSERT_EQ(run.code, 0) << run.err;
      results[i] = Json::parse(run.out)["results"][0];
    }
    for (const char* key : {"tokens_per_second", "peak_bytes", "communication"}) {
      EXPECT_EQ(results[0][key], results[1][key]) << cluster;
    }
  }
}

TEST(DeepSpeedFile, ShowsWhatTheRunWouldUse) {
  const Home home;
  const std::string file = home.file("ds.json", kTrainersFile);
  const auto effective = [&](const std::vector<std::string>& more, const std::string& key) {
    std::vector<std::string> arguments{"show", "strategy", file, "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json shown = Json::parse(zerolab(home, arguments).out);
    for (const Json& effect : shown["effects"]) {
      if (effect["key"] == key) return effect["effective"];
    }
    return Json();
  };
  EXPECT_EQ(effective({}, "bf16.enabled"), "auto");
  EXPECT_EQ(effective({"--cluster", "8xh100"}, "bf16.enabled"), true);
  EXPECT_EQ(effective({"--cluster", "8xv100"}, "fp16.enabled"), true);
  EXPECT_EQ(effective({"--cluster", "8xh100"}, "train_batch_size"), 8);
}

TEST(DeepSpeedFile, WhatHasNoEffectIsOneLine) {
  const Home home;
  const std::string file = home.file("ds.json", kTrainersFile);
  const Output imported = zerolab(home, {"import", "deepspeed", file});
  EXPECT_EQ(lines_with(imported.err, "no effect"), 1u) << imported.err;
  EXPECT_LE(std::count(imported.err.begin(), imported.err.end(), '\n'), 3) << imported.err;
  const Output run =
      zerolab(home, {"run", "gpt2-tiny", "--cluster", "8xh100", "--no-db", "--strategy", file});
  EXPECT_EQ(lines_with(run.err, "no effect"), 1u) << run.err;
  EXPECT_CONTAINS(run.err, "no effect here: fp16.loss_scale, fp16.initial_scale_power, ");
  EXPECT_EQ(lines_with(run.err, "communication_data_type"), 1u) << run.err;
  const Output loud = zerolab(home, {"import", "deepspeed", file, "--verbose"});
  EXPECT_CONTAINS(loud.err, "steps_per_print: no effect: every step is stored");
}

TEST(DeepSpeedFile, TheBatchSaysOfHowManyRanksItIs) {
  const Home home;
  const std::string file =
      home.file("triangle.json", R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                                     "gradient_accumulation_steps": 2})");
  const Output shown = zerolab(home, {"show", "strategy", file, "-o", "json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(Json::parse(shown.out)["derived"]["ranks"], 8);
  EXPECT_EQ(Json::parse(shown.out)["derived"]["micro_batch"], 4);
  const Output four = zerolab(home, {"show", "strategy", file, "--ranks", "4"});
  EXPECT_EQ(four.code, 3);
  EXPECT_CONTAINS(four.err, "the file is one for 8 ranks");
}

TEST(DeepSpeedFile, TwoOfOneNameLiveTogether) {
  const Home home;
  std::filesystem::create_directories(home.folder() / "d1");
  std::filesystem::create_directories(home.folder() / "d2");
  const std::string one = home.file("d1/x.json", R"({"zero_optimization": {"stage": 1}})");
  const std::string two = home.file("d2/x.json", R"({"zero_optimization": {"stage": 2}})");
  const Output run = zerolab(home, {"run", "gpt2-tiny", "--cluster", "8xh100", "--no-db", "-o",
                                    "json", "--strategy", one + "," + two});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json results = Json::parse(run.out)["results"];
  EXPECT_EQ(results[0]["strategy"], "x (d1)");
  EXPECT_EQ(results[1]["strategy"], "x (d2)");
}

}  // namespace
}  // namespace zl::cli_test
