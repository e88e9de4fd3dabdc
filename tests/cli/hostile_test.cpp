// The program under hostile names, values and databases: nothing is written elsewhere, nothing that
// a terminal would act on is printed.
#include <sqlite3.h>

#include <fstream>

#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

std::string strategy_named(const Home& home, const std::string& json_name) {
  return home.file(
      "strategy.json",
      R"({"train_micro_batch_size_per_gpu": 1, "x-zerolab": {"name": ")" + json_name + "\"}}");
}

void change_database(const Home& home, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(home.path("zerolab/results.db").c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

void expect_nothing_to_act_on(const std::string& text) {
  for (const char* sequence : {"\x1b", "\x07", "\r", "\x7f", "\u202e", "\xc2\x9b"}) {
    EXPECT_EQ(text.find(sequence), std::string::npos) << text;
  }
}

TEST(Hostile, NamesDoNotLeaveTheFolderOfCheckpoints) {
  const Home home;
  for (const std::string& name :
       {std::string("../../escape"), home.path("escape"), std::string("..")}) {
    const std::string message =
        refused(home,
                {"run", data_file("tiny.json"), "--strategy", strategy_named(home, name), "--no-db",
                 "--checkpoint", home.path("runs/checkpoints")},
                3);
    EXPECT_CONTAINS(message, "strategy.x-zerolab.name: ");
    EXPECT_FALSE(std::filesystem::exists(home.path("escape")));
    EXPECT_FALSE(std::filesystem::exists(home.path("runs")));
  }
}

// No list holds a run whose scenario is gone.
TEST(Hostile, AComparedRunOfADamagedDatabaseIsNamed) {
  const Home home;
  zerolab(home, {"run", data_file("tiny.json"), "--strategy", "zero-0,zero-1", "--backend", "sim"});
  change_database(home,
                  "PRAGMA foreign_keys = OFF; UPDATE runs SET scenario = 'lost' WHERE id = 1");
  const std::string message = refused(home, {"compare", "1", "2"}, 3);
  EXPECT_CONTAINS(message, home.path("zerolab/results.db"));
  EXPECT_CONTAINS(message, "table runs, row of run 1, column scenario: the database has no such");
}

TEST(Hostile, WhatIsPrintedHasNothingThatTerminalsActOn) {
  const Home home;
  const std::string escapes = "\\u001b]0;title\\u0007\\u001b[2J\\u202e";
  expect_nothing_to_act_on(refused(home, {"show", "strategy", strategy_named(home, escapes)}, 3));
  expect_nothing_to_act_on(refused(home, {"run", "\x1b[2J\u202e"}, 3));
  expect_nothing_to_act_on(refused(home, {"\x1b[2J"}, 2));
  // What an older program, or another one, has stored.
  ASSERT_EQ(zerolab(home, {"run", data_file("tiny.json"), "--backend", "sim"}).code, 0);
  change_database(
      home, "UPDATE runs SET strategy = char(27) || '[2J' || char(8238) || strategy || char(10)");
  const Output compared = zerolab(home, {"compare", "1", "2"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_CONTAINS(compared.out, "a: \\u001b[2J\\u202ezero-");
  expect_nothing_to_act_on(compared.out + compared.err);
  for (const char* format : {"table", "md", "csv"}) {
    expect_nothing_to_act_on(zerolab(home, {"compare", "1", "2", "-o", format}).out);
  }
  const Output json = zerolab(home, {"compare", "1", "2", "-o", "json"});
  expect_nothing_to_act_on(json.out);
  EXPECT_EQ(Json::parse(json.out)["comparisons"][0]["a"]["strategy"].get<std::string>().find(
                "\x1b[2J\u202ezero-"),
            0u)
      << "the same text";
}

TEST(Hostile, EmptyValuesAreNone) {
  const Home home;
  for (const char* option : {"--ranks",
                             "--steps",
                             "--seed",
                             "--micro-batch",
                             "--gradient-accumulation",
                             "--sequence-length",
                             "--link-bandwidth",
                             "--device-memory",
                             "--host-memory",
                             "--precision",
                             "--data",
                             "--tokenizer",
                             "--cluster",
                             "--software",
                             "--model",
                             "--strategy",
                             "--backend",
                             "--nvme-path",
                             "--communicator",
                             "--format",
                             "--db",
                             "--checkpoint"}) {
    const std::string message = refused(home, {"run", "tiny-gpt2", option, ""}, 2);
    EXPECT_CONTAINS(message, "\"\" is no value");
    EXPECT_CONTAINS(message, option);
  }
  refused(home, {"run", ""}, 2);
  refused(home, {"run", "tiny-gpt2", "--steps="}, 2);
}

TEST(Hostile, APathThatIsNotUtf8IsRefusedBeforeAnythingRuns) {
  const Home home;
  const std::string data = home.path("\xff.txt");
  std::ofstream(data) << std::string(10'000, 'x');
  const std::string message =
      refused(home, {"run", data_file("tiny.json"), "--backend", "cpu", "--data", data}, 3);
  EXPECT_CONTAINS(message, "run.data: ");
  EXPECT_CONTAINS(message, "\\xff");
  EXPECT_EQ(message.find("zero-0"), std::string::npos) << "a strategy was begun: " << message;
}

TEST(Hostile, JsonWithoutABottomIsAnError) {
  const Home home;
  const std::string file = home.file("deep.json", "{\"a\": " + std::string(1'000'000, '['));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"run", file},
                                                  {"show", "model", file},
                                                  {"show", "cluster", file},
                                                  {"show", "software", file},
                                                  {"show", "strategy", file},
                                                  {"import", "hf", file},
                                                  {"import", "deepspeed", file},
                                                  {"compare", file, file},
                                                  {"run", "tiny-gpt2", "--cluster", file},
                                                  {"run", "tiny-gpt2", "--strategy", file},
                                                  {"run", "--model", file}}) {
    EXPECT_CONTAINS(refused(home, command, 3), "100 deep");
  }
}

TEST(Hostile, ScriptsAndTomlOfRandomBytesAreErrors) {
  const Home home;
  std::string bytes;
  for (unsigned i = 0, x = 1; i < 20'000; ++i, x = x * 1664525 + 1013904223) {
    bytes += static_cast<char>(x >> 24);
  }
  const std::string file = home.file("bytes", bytes);
  for (const char* kind : {"megatron", "torchtitan"}) {
    const Output output = zerolab(home, {"import", kind, file});
    EXPECT_TRUE(output.code == 3 || output.code == 5) << output.code << output.err;
    EXPECT_TRUE(output.out.empty());
  }
}

TEST(Hostile, ALostLossIsAFailureThatKeepsItsSteps) {
  const Home home;
  const std::string strategy = home.file("exploding.json", R"({"train_micro_batch_size_per_gpu": 1,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e38}}})");
  std::vector<std::string> run = {
      "run", data_file("tiny.json"), "--strategy", strategy, "--steps", "6", "-o", "json"};
  const Output lost = zerolab(home, run);
  EXPECT_EQ(lost.code, 1) << lost.err;
  const Json result = Json::parse(lost.out)["results"][0];
  EXPECT_EQ(result["outcome"], "failed");
  EXPECT_CONTAINS(result["message"].get<std::string>(), "the loss is not finite at step ");
  EXPECT_GT(result["steps"], 0);
  EXPECT_LT(result["steps"], 6);
  EXPECT_EQ(result["run_id"], 1) << "stored with the steps that it took";
  const std::string weights = home.path("w.safetensors");
  EXPECT_EQ(
      zerolab(home, {"train", data_file("tiny.json"), "--strategy", strategy, "--save", weights})
          .code,
      1);
  EXPECT_FALSE(std::filesystem::exists(weights));
  run.emplace_back("--keep-going");
  const Output kept = zerolab(home, run);
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(Json::parse(kept.out)["results"][0]["steps"], 6);
}

TEST(Hostile, AReportPassesOverDamagedRunsAndNamesThem) {
  const Home home;
  ASSERT_EQ(zerolab(home, {"run", data_file("tiny.json"), "--backend", "sim"}).code, 0);
  const std::string constraints = "PRAGMA ignore_check_constraints = ON; ";
  change_database(home, constraints + "UPDATE runs SET outcome = 'lost' WHERE id = 1");
  const Output report = zerolab(home, {"report"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_CONTAINS(report.err, "results.db: damaged: table runs, row 1, column outcome: \"lost\"");
  EXPECT_CONTAINS(report.out, "zero-2");
  EXPECT_EQ(report.out.find("zero-0"), std::string::npos);
  EXPECT_CONTAINS(refused(home, {"compare", "1", "2"}, 3), "row of run 1, column outcome");
  change_database(home, constraints + "UPDATE scenarios SET json = '[[[' || json");
  EXPECT_CONTAINS(refused(home, {"report"}, 3), "table scenarios, row ");
}

}  // namespace
}  // namespace zl::cli_test
