// The pages of a report: every number is the stored one, whatever the names are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "results/format.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "tests/results/fixtures.h"
#include "tests/results/xml_reader.h"

namespace zl::test {
namespace {

const std::string kHostile = "z\"><script>alert('1')</script>&amp;|\x01\xff\xc0\xaf ü";

// A run without the values that no page can show.
RunResult measured(const std::string& strategy) {
  RunResult run = a_full_run();
  run.strategy = strategy;
  run.backend = "cpu";
  run.predicted = false;
  run.outcome = Outcome::ok;
  run.message.clear();
  run.software_held = {};
  run.loss = {5.5, 4.25};
  run.step_time_low = run.step_time_high = 0;
  return run;
}

RunResult simulated(const std::string& strategy) {
  RunResult run = measured(strategy);
  run.backend = "sim";
  run.predicted = true;
  run.step_time.median = 0.2625;
  run.step_time_low = 0.24;
  run.step_time_high = 0.28;
  run.tokens_per_second = 11757.789;
  run.device_capacity = 16LL << 40;
  run.software_held = {.in_use = 14LL << 40,
                       .device = 16LL << 40,
                       .low = 15LL << 40,
                       .high = 17LL << 40,
                       .when = "backward of the loss"};
  return run;
}

RunResult too_large(const std::string& strategy) {
  RunResult run;
  run.strategy = strategy;
  run.backend = "sim";
  run.predicted = true;
  run.outcome = Outcome::out_of_memory;
  run.message = "out of device memory: <weights>";
  return run;
}

// Through the database and back.
struct Stored {
  std::vector<RunResult> runs;  // as saved
  Report report;
};

Stored stored(const std::string& strategy = "zero-2") {
  const TempFolder folder;
  Stored out;
  Store store = Store::open(folder / "results.db", Store::Mode::read_write);
  out.runs = {measured(strategy), simulated(strategy), too_large("zero-0")};
  ReportScenario scenario;
  scenario.name = strategy == kHostile ? kHostile : "demo";
  scenario.facts = {{"model", "gpt2-tiny"}, {"ranks", "4"}};
  scenario.capacity = 16LL << 40;
  ReportEnvironment machine{an_environment(), {}, "2026-11-21T13:46:21.960Z", ""};
  for (const RunResult& run : out.runs) {
    const std::int64_t id = store.save(run, a_scenario(), an_environment());
    ReportRun row{store.load(id), store.list()[0].saved_at, a_scenario().hash, 0};
    row.result.run_id = id;
    if (run.outcome != Outcome::ok) row.needed = 20LL << 40;
    EXPECT_EQ(store.environment(id), an_environment());
    machine.runs.push_back(id);
    scenario.runs.push_back(std::move(row));
  }
  ReportStep step{strategy, 0.25, {{"compute", {{0, 0.125, 1}, {0.125, 0.2, 2}}}}, ""};
  scenario.steps = {step, {"zero-0", 0, {}, "its cluster is gone"}};
  out.report = {"/data/results.db", "2026-11-21T14:00:00Z", "zerolab 1", {scenario}, {machine}};
  return out;
}

std::size_t column(const Rows& rows, const std::string& name) {
  for (std::size_t i = 0; i < rows.at(0).size(); ++i) {
    if (rows[0][i].text == name) return i;
  }
  throw std::runtime_error("no column " + name);
}

class Page {
 public:
  explicit Page(const Report& report) : root_(XmlReader::read(report_html(report))) {}
  const Element& root() const { return root_; }

  Element cell(const std::string& caption, std::size_t row, const std::string& name) const {
    const auto rows = table_rows(root_, caption);
    if (rows.empty()) throw std::runtime_error("no table " + caption);
    return rows.at(row + 1).at(column(rows, name));
  }
  double number(const std::string& caption, std::size_t row, const std::string& name) const {
    return number_of(cell(caption, row, name));
  }

 private:
  Element root_;
};

TEST(Report, SummaryHoldsTheStoredNumbers) {
  const Stored data = stored();
  const Page page(data.report);
  const RunResult& cpu = data.runs[0];
  EXPECT_EQ(page.cell("Summary: Runs", 0, "strategy").text, "zero-2");
  EXPECT_EQ(page.number("Summary: Runs", 0, "loss"), 4.25);
  EXPECT_EQ(page.number("Summary: Runs", 0, "tokens/s"), cpu.tokens_per_second);
  EXPECT_EQ(page.number("Summary: Runs", 0, "step time"), cpu.step_time.median);
  EXPECT_EQ(page.number("Summary: Runs", 0, "peak memory"), cpu.peak_device.total());
  EXPECT_EQ(page.number("Summary: Runs", 0, "wire/step"), cpu.wire_bytes_per_step);
  EXPECT_EQ(page.number("Summary: Runs", 1, "run"), 2);
  EXPECT_EQ(page.cell("Summary: Runs", 1, "loss").text, "-") << "a simulated loss predicts nothing";
  EXPECT_EQ(page.cell("Summary: Runs", 2, "outcome").text, "out_of_memory");
  EXPECT_EQ(page.cell("Summary: Runs", 2, "peak memory").text, "-");
  EXPECT_EQ(page.cell("Summary: Scenario", 0, "value").text, "gpt2-tiny");
}

TEST(Report, FitsTableSubtracts) {
  const Stored data = stored();
  const Page page(data.report);
  const std::int64_t reserved = data.runs[0].reserved_device;
  EXPECT_EQ(page.cell("What fits", 0, "fits").text, "yes");
  EXPECT_EQ(page.number("What fits", 0, "needs"), reserved) << "what the pools reserve decides";
  EXPECT_EQ(page.number("What fits", 0, "in use of it"), data.runs[0].peak_device.total());
  EXPECT_EQ(page.number("What fits", 0, "headroom"), (16LL << 40) - reserved);
  EXPECT_EQ(page.cell("What fits", 1, "fits").text, "maybe") << "the bar lies across the capacity";
  EXPECT_EQ(page.number("What fits", 1, "needs"), 16LL << 40) << "what the software would hold";
  EXPECT_EQ(page.number("What fits", 1, "at most"), 17LL << 40);
  EXPECT_EQ(page.number("What fits", 1, "in use of it"), 14LL << 40);
  EXPECT_EQ(page.cell("What fits", 2, "fits").text, "NO");
  EXPECT_EQ(page.number("What fits", 2, "needs"), 20LL << 40);
  EXPECT_EQ(page.number("What fits", 2, "headroom"), -(4LL << 40));
  EXPECT_EQ(page.cell("What fits", 2, "why not").text, data.runs[2].message);
}

TEST(Report, MemoryTableHasEveryTag) {
  const Stored data = stored();
  const Page page(data.report);
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    EXPECT_EQ(page.number("Memory", 0, name_of(static_cast<MemoryTag>(i))),
              data.runs[0].peak_device.tag[i]);
  }
  EXPECT_EQ(page.number("Memory", 0, "host"), data.runs[0].peak_host.total());
  EXPECT_EQ(page.number("Memory", 0, "files"), data.runs[0].peak_nvme.total());
  EXPECT_EQ(table_rows(page.root(), "Memory").size(), 3u) << "one that did not run has no peak";
}

TEST(Report, TimesAndRatesHoldTheStoredNumbers) {
  const Stored data = stored();
  const Page page(data.report);
  EXPECT_EQ(page.number("Step time", 0, "low"), 0.125) << "measured: the fastest step";
  EXPECT_EQ(page.number("Step time", 1, "low"), 0.24) << "simulated: the error bar";
  EXPECT_EQ(page.number("Step time", 1, "high"), 0.28);
  EXPECT_NEAR(page.number("Step time", 0, "exposed communication"), 0.007, 1e-12);
  EXPECT_EQ(page.number("Step time", 0, "exposed tensor communication"), 0.006);
  EXPECT_EQ(page.number("Step time", 0, "exposed pipeline communication"), 0.007);
  EXPECT_NEAR(page.number("Step time", 0, "host and launch"), 0.25 - 0.15, 1e-12);
  const RunResult& sim = data.runs[1];
  const double tokens = sim.tokens_per_second * sim.step_time.median;
  EXPECT_EQ(page.number("Throughput", 0, "tokens/s"), 12345.678);
  EXPECT_NEAR(page.number("Throughput", 1, "low"), tokens / 0.28, 1e-9);
  EXPECT_NEAR(page.number("Throughput", 1, "high"), tokens / 0.24, 1e-9);
  EXPECT_EQ(page.number("Throughput", 0, "MFU"), 0.43);
  EXPECT_NEAR(page.number("Throughput", 0, "TFLOP/s per rank"), 1.5e18 / 0.25 / 4 / 1e12, 1e-3);
}

TEST(Report, CommunicationHoldsEveryCollective) {
  const Stored data = stored();
  const Page page(data.report);
  EXPECT_EQ(page.cell("Communication", 0, "collective").text, "reduce_scatter");
  EXPECT_EQ(page.number("Communication", 0, "bytes of the run"), 123456);
  EXPECT_EQ(page.number("Communication", 0, "bytes a step"), 123456.0 / 20);
  EXPECT_EQ(page.number("Communication", 1, "calls of the run"), 20);
  EXPECT_EQ(page.cell("Communication", 1, "link").text, "nvlink");
}

TEST(Report, TimelineSaysHowBusyAStreamIs) {
  const Stored data = stored();
  const Page page(data.report);
  EXPECT_NEAR(page.number("Timeline of one step: zero-2", 0, "busy"), 0.2, 1e-12);
  EXPECT_NEAR(page.number("Timeline of one step: zero-2", 0, "share of the step"), 0.8, 1e-12);
  EXPECT_NE(page.root().text.find("Not simulated: its cluster is gone"), std::string::npos);
}

TEST(Report, AccuracyComparesTheSameScenarioOnly) {
  Stored data = stored();
  const Page page(data.report);
  EXPECT_EQ(page.cell("Simulated and measured", 0, "error").text, "+5.0 %");
  EXPECT_EQ(page.cell("Simulated and measured", 0, "in error bar").text, "yes");
  EXPECT_EQ(page.cell("Simulated and measured", 0, "memory equal").text, "yes");
  data.report.scenarios[0].runs[1].scenario_hash = "another";
  EXPECT_TRUE(table_rows(Page(data.report).root(), "Simulated and measured").empty());
}

TEST(Report, EnvironmentNamesTheMachine) {
  const Page page(stored().report);
  const std::string caption = "Machines and builds of the runs";
  EXPECT_EQ(page.cell(caption, 0, "GPU").text, "H200");
  EXPECT_EQ(page.number(caption, 0, "memory"), 8e9);
  EXPECT_EQ(page.cell(caption, 0, "runs").text, "1, 2, 3");
  EXPECT_EQ(page.cell(caption, 0, "commit").text, "abc123");
}

TEST(Report, HostileNamesAreText) {
  const Page page(stored(kHostile).report);
  EXPECT_TRUE(page.root().all("script").empty());
  const std::string shown = page.cell("Summary: Runs", 0, "strategy").text;
  const std::string heading = page.root().all("h2").at(0)->text;
  EXPECT_EQ(shown.find("z\"><script>alert('1')</script>&amp;|\\u0001"), 0u) << shown;
  EXPECT_EQ(heading.find("z\"><script>alert('1')</script>&amp;| "), 0u) << heading;
  EXPECT_EQ((shown + heading).find('\x01'), std::string::npos);
  const std::string markdown = report_markdown(stored(kHostile).report);
  EXPECT_EQ(std::regex_search(markdown, std::regex(R"((^|[^\\])<script)")), false);
}

TEST(Report, PageNeedsNothingFromElsewhere) {
  const Report report = stored().report;
  const std::string html = report_html(report);
  const Element root = XmlReader::read(html);
  for (const char* foreign : {"script", "link", "img", "iframe", "object", "image", "use"}) {
    EXPECT_TRUE(root.all(foreign).empty()) << foreign;
  }
  EXPECT_EQ(html.find("@import"), std::string::npos);
  static const std::regex address(R"(https?://([^"]*))");
  for (std::sregex_iterator each(html.begin(), html.end(), address), end; each != end; ++each) {
    EXPECT_EQ((*each)[1].str().rfind("www.w3.org/", 0), 0u) << "only names of languages";
  }
  static const std::regex fill(R"(url\(([^)]*)\))");
  for (std::sregex_iterator each(html.begin(), html.end(), fill), end; each != end; ++each) {
    EXPECT_EQ((*each)[1].str().rfind("#hatch-", 0), 0u);
  }
}

TEST(Report, ChartsAreNamedAndDescribed) {
  const Element root = XmlReader::read(report_html(stored().report));
  std::size_t charts = 0;
  for (const Element* svg : root.all("svg")) {
    if (svg->attribute("role") != "img") continue;
    ++charts;
    EXPECT_FALSE(svg->attribute("aria-label").empty());
    EXPECT_EQ(svg->all("title").at(0)->text, svg->attribute("aria-label"));
    EXPECT_FALSE(svg->all("desc").at(0)->text.empty());
  }
  EXPECT_EQ(charts, 10u)
      << "loss, norm, learning rate, validation loss, memory, step time, throughput, "
         "communication, a step, accuracy";
}

TEST(Report, WhatTellsRowsApartIsAColumn) {
  Stored data = stored();
  data.report.scenarios[0].runs[0].name = "zero-2 (bf16)";
  data.report.scenarios[0].runs[0].facts = {{"precision", "bf16"}};
  data.report.scenarios[0].runs[1].facts = {{"precision", "fp32"}};
  data.report.scenarios[0].runs[1].tags = "base";
  const Page page(data.report);
  EXPECT_EQ(page.cell("Summary: Runs", 0, "strategy").text, "zero-2 (bf16)");
  EXPECT_EQ(page.cell("Summary: Runs", 0, "precision").text, "bf16");
  EXPECT_EQ(page.cell("Summary: Runs", 1, "precision").text, "fp32");
  EXPECT_EQ(page.cell("Summary: Runs", 2, "precision").text, "-");
  EXPECT_EQ(page.cell("Summary: Runs", 1, "tags").text, "base");
  for (const char* table : {"Training", "What fits", "Memory", "Step time", "Throughput",
                            "Communication", "Simulated and measured"}) {
    EXPECT_EQ(page.cell(table, 0, "strategy").text, "zero-2 (bf16)") << table;
  }
}

TEST(Report, TrainingHasTheEndsOfTheLossesAndTheirCurves) {
  Stored data = stored();
  RunResult& run = data.report.scenarios[0].runs[0].result;
  run.loss = {5.5, 3.0, 4.25, 4.0};
  run.outcome = Outcome::interrupted;
  run.message = "interrupted after 16 of 60 steps";
  const Page page(data.report);
  EXPECT_EQ(table_rows(page.root(), "Training").size(), 2u) << "a simulated run trains nothing";
  EXPECT_EQ(page.cell("Training", 0, "outcome").text, "interrupted");
  EXPECT_EQ(page.number("Training", 0, "first step"), 13);
  EXPECT_EQ(page.number("Training", 0, "first loss"), 5.5);
  EXPECT_EQ(page.number("Training", 0, "last loss"), 4.0);
  EXPECT_EQ(page.number("Training", 0, "lowest loss"), 3.0);
  EXPECT_NE(page.root().text.find("zero-2, cpu was interrupted after 16 of 60 steps."),
            std::string::npos);
  const std::size_t timed = table_rows(page.root(), "Step time").size();
  EXPECT_EQ(timed, 2u) << "of what was interrupted no times are shown";
}

// A heading and what it is of are one block that a page does not break; charts scroll on a phone.
TEST(Report, HeadingsStayWithTheirCharts) {
  const std::string html = report_html(stored().report);
  const Element root = XmlReader::read(html);
  std::size_t kept = 0;
  for (const Element* block : root.all("div")) {
    if (block->attribute("class") != "keep") continue;
    kept += block->all("h2").size() + block->all("h3").size() + block->all("h4").size();
    for (const Element* svg : block->all("svg")) EXPECT_EQ(svg->attribute("class"), "chart");
  }
  const std::size_t headings =
      root.all("h2").size() - 1 + root.all("h3").size() + root.all("h4").size();
  EXPECT_EQ(kept, headings) << "all but the heading of the environment";
  EXPECT_NE(html.find(".keep, .scroll, tr { break-inside: avoid; }"), std::string::npos);
  EXPECT_NE(html.find("h3 + p, h4 + p { break-after: avoid; }"), std::string::npos);
  EXPECT_NE(html.find("min-width: 720px"), std::string::npos);
}

// On paper patterns become fonts by the thousand: bars have a colour and lines of their own there.
TEST(Report, PaperHasNoPatterns) {
  const std::string html = report_html(stored().report);
  const std::string style = html.substr(html.find("<style>"), html.find("</style>"));
  const std::string paper = style.substr(style.rfind("@media print"));
  EXPECT_EQ(paper.substr(0, paper.find("</style>")).find("url("), std::string::npos);
  for (std::size_t i = 0; i < kSeries; ++i) {
    EXPECT_NE(paper.find("svg .s" + std::to_string(i) + " { fill: #"), std::string::npos) << i;
  }
}

// Cells of the Markdown table under a heading.
std::vector<std::vector<std::string>> markdown_rows(const std::string& page,
                                                    const std::string& heading) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(page.substr(page.find(heading + "\n")));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| ", 0) != 0) {
      if (!rows.empty()) break;
      continue;
    }
    auto& row = rows.emplace_back();
    std::istringstream cells(line.substr(2));
    for (std::string cell; std::getline(cells, cell, '|');) {
      const auto first = cell.find_first_not_of(' ');
      const auto last = cell.find_last_not_of(' ');
      row.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
  }
  return rows;
}

TEST(Report, MarkdownHasTheSameTables) {
  const Report report = stored().report;
  const Element page = XmlReader::read(report_html(report));
  const std::string markdown = report_markdown(report);
  for (const char* section : {"What fits", "Memory", "Step time", "Throughput", "Communication",
                              "Simulated and measured"}) {
    const auto expected = table_rows(page, section);
    const auto rows = markdown_rows(markdown, std::string("### ") + section);
    ASSERT_EQ(rows.size(), expected.size() + 1) << section << ": one rule";
    for (std::size_t r = 0; r < expected.size(); ++r) {
      const auto& row = rows[r == 0 ? 0 : r + 1];
      for (std::size_t c = 0; c < expected[r].size(); ++c) {
        std::string text = row.at(c);
        text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
        EXPECT_EQ(text, expected[r][c].text) << section;
      }
    }
  }
}

}  // namespace
}  // namespace zl::test
