// `zerolab report` from the command line: what was run is what the page says.
#include <sqlite3.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/cli/program.h"
#include "tests/results/xml_reader.h"

namespace zl::cli_test {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

test::Element page_of(const Home& home, std::vector<std::string> arguments) {
  const std::string file = home.path("report.html");
  arguments.insert(arguments.begin(), "report");
  arguments.insert(arguments.end(), {"--output", file});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "");
  return test::XmlReader::read(contents(file));
}

void execute(const Home& home, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(home.path("zerolab/results.db").c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
}

double number(const test::Rows& rows, std::size_t row, const std::string& column) {
  for (std::size_t i = 0; i < rows.at(0).size(); ++i) {
    if (rows[0][i].text == column) return test::number_of(rows.at(row)[i]);
  }
  return std::nan("");
}

TEST(ReportCommand, ThePageSaysWhatTheRunsSaid) {
  const Home home;
  const Output run = zerolab(home, {"run", "tiny-gpt2", "--backend", "cpu,sim", "-o", "json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const test::Element page = page_of(home, {});
  const Json results = Json::parse(run.out);
  const auto runs = test::table_rows(page, "Summary: Runs");
  const auto memory = test::table_rows(page, "Memory");
  ASSERT_EQ(runs.size(), 11u);
  for (std::size_t i = 1; i < runs.size(); ++i) {  // by strategy, then cpu before sim
    const Json& result = results[(i - 1) % 2]["results"][(i - 1) / 2];
    EXPECT_EQ(runs[i][0].text, result["strategy"]);
    EXPECT_EQ(number(runs, i, "run"), result["run_id"]);
    EXPECT_EQ(number(runs, i, "tokens/s"), result["tokens_per_second"]);
    EXPECT_NEAR(number(runs, i, "step time"), result["step_time_seconds"]["median"], 1e-12);
    EXPECT_EQ(number(memory, i, "activation"), result["peak_bytes"]["device"]["activation"]);
  }
  // The timeline is a new simulation of the stored scenario: to the last picosecond the same step.
  const double predicted = results[1]["results"][3]["step_time_seconds"]["median"];
  const auto lanes = test::table_rows(page, "Timeline of one step: zero-3");
  ASSERT_GE(lanes.size(), 3u) << "compute and communication";
  EXPECT_NEAR(number(lanes, 1, "busy") / number(lanes, 1, "share of the step"), predicted, 1e-11);
  EXPECT_EQ(test::table_rows(page, "Simulated and measured").size(), 6u);
}

TEST(ReportCommand, PredictionsStandBesideTheFastest) {
  const Home home;
  ASSERT_EQ(zerolab(home, {"run", "llama3-8b", "--cluster", "8xh100", "--strategy",
                           "zero-2,zero-3,zero-3-recompute"})
                .code,
            0);
  const auto rows = test::table_rows(page_of(home, {}), "Step time");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].back().text, "beside the fastest");
  EXPECT_EQ(rows[1].back().text, "fastest");
  EXPECT_CONTAINS(rows[2].back().text, "1.01x, 0.8");
  EXPECT_CONTAINS(rows[2].back().text, "not decided");
}

TEST(ReportCommand, WhatDoesNotFitSaysWhatItNeeds) {
  const Home home;
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-0", "--device-memory",
                 "1MiB"});
  const auto fits = test::table_rows(page_of(home, {}), "What fits");
  const auto run = [&](const std::string& bytes) {
    return zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-0", "--no-db",
                          "--device-memory", bytes, "-o", "json"});
  };
  const Json in_use = Json::parse(run("1GiB").out)["results"][0]["peak_bytes"]["device"]["total"];
  const double needed = number(fits, 1, "needs");
  EXPECT_GE(needed, in_use) << "fragments included";
  EXPECT_EQ(number(fits, 1, "headroom"), (1 << 20) - needed);
  EXPECT_EQ(run(std::to_string(static_cast<std::int64_t>(needed)) + "B").code, 0);
  EXPECT_EQ(run(std::to_string(static_cast<std::int64_t>(0.97 * needed)) + "B").code, 4);
}

TEST(ReportCommand, ScenariosHaveSectionsAndFiltersChoose) {
  const Home home;
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim"});
  zerolab(home, {"run", "tiny-llama", "--backend", "sim"});
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--ranks", "4"});
  const test::Element all = page_of(home, {});
  const auto sections = all.all("h2");
  ASSERT_EQ(sections.size(), 4u) << "three scenarios and the environment";
  EXPECT_EQ(sections[0]->text, "tiny-gpt2 (ranks 4)") << "the last one first";
  EXPECT_EQ(sections[2]->text, "tiny-gpt2 (ranks 2)");
  EXPECT_EQ(sections[1]->text, "tiny-llama");
  const test::Element one =
      page_of(home, {"--scenario", "tiny-llama", "--strategy", "zero-1,zero-3"});
  EXPECT_EQ(one.all("h2").size(), 2u);
  EXPECT_EQ(test::table_rows(one, "Summary: Runs").size(), 3u);
  EXPECT_CONTAINS(refused(home, {"report", "--scenario", "tiny-lama"}, 3), "\"tiny-llama\"");
  EXPECT_CONTAINS(refused(home, {"report", "--strategy", "zero-9"}, 3), "zero-9");
}

// Runs that differ in software, precision or batch stand side by side and are told apart.
TEST(ReportCommand, NoTwoRowsAreEqual) {
  const Home home;
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-2",
                               "--cluster", "8xh100"});
    const Output output = zerolab(home, more);
    EXPECT_EQ(output.code, 0) << output.err;
  };
  run({});
  run({"--software", "torch-fsdp2"});
  run({"--precision", "fp16"});
  run({"--gradient-accumulation", "8"});
  run({"--seed", "99"});
  const test::Element page = page_of(home, {});
  const auto headings = page.all("h2");
  ASSERT_EQ(headings.size(), 3u);
  EXPECT_EQ(headings[0]->text, "tiny-gpt2 (run.seed 99)");
  EXPECT_EQ(headings[1]->text, "tiny-gpt2 (run.seed 7)");
  std::set<std::string> names;
  for (const auto& row : test::table_rows(*page.all("section").at(1), "Summary: Runs")) {
    names.insert(row.at(0).text);
  }
  std::set<std::string> expected{"strategy"};
  for (const char* told :
       {"bf16, accumulation 1", "fp16, accumulation 1", "bf16, accumulation 8"}) {
    expected.insert("zero-2 (as torch-fsdp2-compile, " + std::string(told) + ")");
  }
  expected.insert("zero-2 (as torch-fsdp2, bf16, accumulation 1)");
  EXPECT_EQ(names, expected);
}

// A study of another name than its twin in content has a section of its own.
TEST(ReportCommand, StudiesKeepTheirNames) {
  const Home home;
  const std::string study =
      home.file("mine.json", R"({"schema": 1, "model": "gpt2-tiny", "strategies": ["zero-1"]})");
  const std::string twin =
      home.file("twin.json", R"({"schema": 1, "model": "gpt2-tiny", "strategies": ["zero-1"]})");
  for (const std::string& file : {study, twin}) {
    EXPECT_EQ(zerolab(home, {"run", file, "--backend", "sim"}).code, 0);
  }
  const test::Element page = page_of(home, {});
  ASSERT_EQ(page.all("h2").size(), 3u);
  EXPECT_EQ(page.all("h2")[0]->text, "twin");
  EXPECT_EQ(page.all("h2")[1]->text, "mine");
  EXPECT_EQ(page_of(home, {"--scenario", "mine"}).all("h2").size(), 2u);
}

TEST(ReportCommand, ChosenRunsStandSideBySide) {
  const Home home;
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-1,zero-3"});
  zerolab(home, {"run", "tiny-llama", "--backend", "cpu", "--strategy", "zero-1", "--steps", "5",
                 "--tag", "mine"});
  const test::Element page = page_of(home, {"--runs", "3,1"});
  EXPECT_EQ(page.all("h2").at(0)->text, "Chosen runs");
  const auto runs = test::table_rows(page, "Summary: Runs");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(number(runs, 1, "run"), 3);
  EXPECT_EQ(number(runs, 2, "run"), 1);
  EXPECT_EQ(test::table_rows(page, "Training").size(), 2u);
  const test::Element tagged = page_of(home, {"--tag", "mine"});
  EXPECT_EQ(tagged.all("h2").at(0)->text, "Runs tagged mine");
  EXPECT_EQ(test::table_rows(tagged, "Summary: Runs").size(), 2u);
  EXPECT_CONTAINS(refused(home, {"report", "--runs", "1,8"}, 3), "has no run 8");
  EXPECT_CONTAINS(refused(home, {"report", "--tag", "none"}, 3), "no run has the tag");
}

TEST(ReportCommand, ACrashDoesNotHideAResult) {
  const Home home;
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-0"});
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-0"});
  execute(home, "UPDATE runs SET outcome = 'failed' WHERE id = 2");
  EXPECT_EQ(number(test::table_rows(page_of(home, {}), "Summary: Runs"), 1, "run"), 1);
}

TEST(ReportCommand, AScenarioOfAnotherVersionIsStillReported) {
  const Home home;
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-0"});
  execute(home, "UPDATE scenarios SET json = '{\"schema\": 9}'");
  const test::Element page = page_of(home, {});
  EXPECT_GT(number(test::table_rows(page, "Summary: Runs"), 1, "tokens/s"), 0);
  EXPECT_CONTAINS(page.text, "Not simulated: ");
}

TEST(ReportCommand, MarkdownGoesToStdoutAndIntoMdFiles) {
  const Home home;
  zerolab(home, {"run", "tiny-gpt2", "--backend", "sim"});
  const Output text = zerolab(home, {"report"});
  EXPECT_EQ(text.out.rfind("# zerolab report\n", 0), 0u);
  EXPECT_CONTAINS(text.out, "### What fits");
  const std::string file = home.path("report.md");
  EXPECT_EQ(zerolab(home, {"report", "--output", file}).code, 0);
  EXPECT_EQ(contents(file).rfind("# zerolab report\n", 0), 0u);
  EXPECT_EQ(zerolab(home, {"report", "--format", "html"}).out.rfind("<!DOCTYPE html>", 0), 0u);
  refused(home, {"report", "--format", "pdf"}, 2);
}

TEST(ReportCommand, BadDatabasesAndFilesAreOneError) {
  const Home home;
  const std::string missing = home.path("none.db");
  EXPECT_CONTAINS(refused(home, {"report", missing}, 1), "none.db");
  EXPECT_FALSE(std::filesystem::exists(missing)) << "a report creates no database";
  const std::string text = home.file("text.db", std::string(4096, 'x'));
  EXPECT_CONTAINS(refused(home, {"report", text}, 3), "text.db");
  ASSERT_EQ(zerolab(home, {"run", "tiny-gpt2", "--backend", "sim"}).code, 0);
  const std::string old = home.file("kept.html", "old");
  EXPECT_CONTAINS(refused(home, {"report", "--output", home.path("no/such/r.html")}, 1), "r.html");
  std::filesystem::create_directory(home.path("folder.html"));
  EXPECT_CONTAINS(refused(home, {"report", "--output", home.path("folder.html")}, 1),
                  "folder.html");
  execute(home, "DELETE FROM runs");
  EXPECT_CONTAINS(refused(home, {"report", "--output", old}, 3), "no runs to report");
  EXPECT_EQ(contents(old), "old");
  execute(home, "PRAGMA user_version = 999");
  EXPECT_CONTAINS(refused(home, {"report", "--output", old}, 3), "newer");
}

// What `zerolab validate` predicted is in the database, and each run links to its source.
TEST(ReportCommand, PublishedRunsStandBesideTheirPredictions) {
  const Home home;
  const std::string runs = home.file(
      "runs.csv",
      "id,source,link,gpu,n_gpus,layers,hidden,heads,vocab,seq,micro_batch,dp,zero_stage,precision,"
      "software,measured_quantity,value,unit\n"
      "ours,our cluster,https://example.org/a?b&c,H100,8,4,256,4,1000,128,4,8,2,bf16,torch-fsdp2,"
      "iteration_time,0.02,s\n");
  const Output validated = zerolab(home, {"validate", "--file", runs, "-o", "json"});
  ASSERT_EQ(validated.code, 0) << validated.err;
  const Json run = Json::parse(validated.out)["runs"][0];
  ASSERT_EQ(zerolab(home, {"run", "tiny-gpt2", "--backend", "sim"}).code, 0);
  const test::Element page = page_of(home, {});
  const auto rows = test::table_rows(page, "Published runs: Time of a step, every run");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1][0].text, "ours");
  EXPECT_EQ(number(rows, 1, "predicted"), run["predicted_seconds"]);
  EXPECT_NEAR(number(rows, 1, "left out: error"), run["left_out_seconds"].get<double>() / 0.02 - 1,
              1e-9);
  bool is_linked = false;
  for (const test::Element* link : page.all("a")) {
    is_linked = is_linked || link->attribute("href") == "https://example.org/a?b&c";
  }
  EXPECT_TRUE(is_linked);
  // Of one scenario, of a database that keeps none, and under another software there are none.
  EXPECT_TRUE(test::table_rows(page_of(home, {"--scenario", "tiny-gpt2"}),
                               "Published runs: Time of a step, every run")
                  .empty());
  const std::string other = home.path("other.db");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--no-db"}, {"--software", "torch-ddp", "--db", other}}) {
    std::vector<std::string> command{"validate", "--file", runs};
    command.insert(command.end(), more.begin(), more.end());
    ASSERT_EQ(zerolab(home, command).code, 0);
  }
  EXPECT_FALSE(std::filesystem::exists(other));
}

}  // namespace
}  // namespace zl::cli_test
