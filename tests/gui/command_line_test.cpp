#include "gui/command_line.h"

#include <gtest/gtest.h>

#include <QFileInfo>
#include <QProcess>
#include <QProcessEnvironment>
#include <algorithm>

#include "results/store.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/scenario.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

// The scenarios that the line stores runs of, by content hash, when a shell runs it in an empty
// folder.
std::vector<std::string> hashes_run_by(const std::string& line) {
  const QTemporaryDir folder;
  QProcess shell;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("PATH", QFileInfo(ZL_PROGRAM).path() + ":" + environment.value("PATH"));
  shell.setProcessEnvironment(environment);
  shell.setWorkingDirectory(folder.path());
  shell.start("sh", {"-c", QString::fromStdString(line) + " --db runs.db"});
  EXPECT_TRUE(shell.waitForFinished(test::kLong));
  // That a strategy does not fit is a result too.
  const int ended = shell.exitCode();
  EXPECT_TRUE(ended == 0 || ended == static_cast<int>(ErrorCode::infeasible))
      << line << "\n"
      << shell.readAllStandardError().toStdString();
  std::vector<std::string> hashes;
  Store store = Store::open(folder.filePath("runs.db").toStdString(), Store::Mode::read_only);
  for (const RunSummary& run : store.list()) hashes.push_back(run.scenario_hash);
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

std::vector<std::string> hashes_of(const Document& document) {
  const Scenario scenario = scenario_from_json(document.text(), document.source());
  std::vector<std::string> hashes;
  for (const ImportedStrategy& each : scenario.strategies) {
    hashes.push_back(content_hash(with_one_strategy(scenario, each)));
  }
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

Document small_demo() {
  return Document::open("demo").with_strategies({"zero-1", "zero-3"}).with("run.steps", "2");
}

// Whatever "Copy as command" prints is run as the same scenario.
void expect_reproduced(const Document& document, const std::string& begin) {
  const std::string line = command_line(document);
  EXPECT_TRUE(line.starts_with(begin)) << line;
  EXPECT_EQ(hashes_run_by(line), hashes_of(document)) << line;
}

TEST(CommandLine, AStudyAsItIsIsItsName) {
  const Document demo = Document::open("demo");
  EXPECT_EQ(command_line(demo), "zerolab run demo --backend sim");
  expect_reproduced(demo, "zerolab run demo");
}

TEST(CommandLine, EveryOptionMeansTheSameScenario) {
  const char* begin = "zerolab run --model gpt2-3m";
  const Document document = small_demo();
  expect_reproduced(document.with("run.micro_batch", "4"), begin);
  expect_reproduced(document.with("cluster", "8xa100-80").with("run.software", "torch-fsdp2"),
                    begin);
  for (const auto& [key, value] : {std::pair{"run.ranks", "2"},
                                   {"run.seed", "7"},
                                   {"run.precision", "bf16"},
                                   {"run.gradient_accumulation", "3"},
                                   {"run.sequence_length", "32"},
                                   {"run.data", "it's my data.txt"},
                                   {"run.device_memory", "3GiB"}}) {
    expect_reproduced(document.with(key, value), begin);
  }
}

TEST(CommandLine, WhatOptionsCannotSayIsAFile) {
  expect_reproduced(small_demo().with("model", R"({"family": "gpt2", "layers": 1, "hidden": 32,
                                                   "heads": 2, "vocab": 256,
                                                   "max_sequence": 64})"),
                    "cat > scenario.json");
}

}  // namespace
}  // namespace zl::gui
