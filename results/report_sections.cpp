#include "results/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/bytes.h"
#include "results/run_tables.h"
#include "results/stored_tables.h"

namespace zl {
namespace {

Table facts_table(const ReportScenario& scenario) {
  Table table{{{"what", Align::left}, {"value", Align::left}}, {}};
  for (const auto& [name, value] : scenario.facts) table.rows.push_back({name, value});
  return table;
}

const ReportRun* best(const ReportScenario& scenario, bool predicted, auto less) {
  const ReportRun* found = nullptr;
  for (const ReportRun& run : scenario.runs) {
    if (!is_ok(run.result) || run.result.predicted != predicted) continue;
    if (found == nullptr || less(run.result, found->result)) found = &run;
  }
  return found;
}

// "Measured: fastest zero-1 at 194.4 ms a step, smallest zero-3 with 54.7 MiB."
std::string best_text(const ReportScenario& scenario, bool predicted) {
  const ReportRun* fastest = best(scenario, predicted, [](const RunResult& a, const RunResult& b) {
    return a.tokens_per_second > b.tokens_per_second;
  });
  const ReportRun* smallest = best(scenario, predicted, [](const RunResult& a, const RunResult& b) {
    return a.peak_device.total() < b.peak_device.total();
  });
  if (fastest == nullptr || fastest->result.tokens_per_second <= 0) return "";
  return fmt::format(" {}: fastest is {} with {:.0f} tokens/s, smallest is {} with {}.",
                     predicted ? "Simulated" : "Measured", name_of(*fastest),
                     fastest->result.tokens_per_second, name_of(*smallest),
                     format_bytes(smallest->result.peak_device.total()));
}

}  // namespace

std::string name_of(const ReportRun& run) {
  return run.name.empty() ? run.result.strategy : run.name;
}
std::string run_label(const ReportRun& run) { return name_of(run) + ", " + run.result.backend; }
bool is_ok(const RunResult& run) { return run.outcome == Outcome::ok; }

Table without_empty_columns(Table table) {
  const auto is_empty = [](const Cell& cell) {
    return cell == Cell() || cell == Cell(0.0) || cell == Cell(std::int64_t{0}) ||
           cell == Cell(std::string());
  };
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const auto empty = [&](const auto& row) { return is_empty(row[i]); };
    if (!std::all_of(table.rows.begin(), table.rows.end(), empty)) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return table;
}

namespace {

// What tells the rows apart, a column each.
std::vector<std::string> telling_facts(const ReportScenario& scenario) {
  std::vector<std::string> names;
  for (const ReportRun& run : scenario.runs) {
    for (const auto& [name, value] : run.facts) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

Cell fact_of(const ReportRun& run, const std::string& name) {
  for (const auto& [each, value] : run.facts) {
    if (each == name) return known_text(value);
  }
  return {};
}

bool has_tags(const ReportScenario& scenario) {
  return std::any_of(scenario.runs.begin(), scenario.runs.end(),
                     [](const ReportRun& run) { return !run.tags.empty(); });
}

Table runs_table(const ReportScenario& scenario) {
  Table table{{{"strategy", Align::left}, {"backend", Align::left}, {"outcome", Align::left}}, {}};
  const std::vector<std::string> facts = telling_facts(scenario);
  const bool tags = has_tags(scenario);
  for (const std::string& fact : facts) table.columns.push_back({fact, Align::left});
  for (const Column& column :
       std::initializer_list<Column>{{"steps"},
                                     {"loss"},
                                     {"tokens/s"},
                                     {"step time", Align::right, Unit::seconds},
                                     {"peak memory", Align::right, Unit::bytes},
                                     {"wire/step", Align::right, Unit::bytes},
                                     {"run"},
                                     {"saved at", Align::left}}) {
    table.columns.push_back(column);
  }
  if (tags) table.columns.push_back({"tags", Align::left});
  for (const ReportRun& run : scenario.runs) {
    const RunResult& result = run.result;
    const bool ran = result.steps > 0;
    const bool has_loss = !result.predicted && !result.loss.empty();
    auto& row = table.rows.emplace_back();
    row = {name_of(run), result.backend, std::string(name_of(result.outcome))};
    for (const std::string& fact : facts) row.push_back(fact_of(run, fact));
    for (Cell cell :
         {ran ? Cell(result.steps) : Cell(), has_loss ? Cell(result.loss.back()) : Cell(),
          positive(result.tokens_per_second), positive(result.step_time.median),
          ran ? Cell(result.peak_device.total()) : Cell(),
          ran ? Cell(result.wire_bytes_per_step) : Cell(), Cell(result.run_id),
          Cell(minute_of(run.saved_at))}) {
      row.push_back(std::move(cell));
    }
    if (tags) row.push_back(known_text(run.tags));
  }
  return table;
}

// Of the runs that did not get as far as they should.
std::string unfinished_text(const ReportScenario& scenario) {
  std::string text;
  for (const ReportRun& run : scenario.runs) {
    if (run.result.outcome == Outcome::interrupted) {
      text += fmt::format(" {} was {}.", run_label(run), run.result.message);
    }
  }
  return text;
}

}  // namespace

ReportSection summary_section(const ReportScenario& scenario) {
  const std::string text = fmt::format("{} runs.", scenario.runs.size()) +
                           best_text(scenario, false) + best_text(scenario, true) +
                           unfinished_text(scenario);
  return {"Summary",
          {{"Scenario", "", "", facts_table(scenario)}, {"Runs", text, "", runs_table(scenario)}}};
}

// What decides is what the pools reserve, in whole slabs; what they reserve beyond what is in use
// at the peak is fragmentation.
ReportSection fits_section(const ReportScenario& scenario) {
  Table table{{{"strategy", Align::left},
               {"backend", Align::left},
               {"fits", Align::left},
               {"needs", Align::right, Unit::bytes},
               {"at least", Align::right, Unit::bytes},
               {"at most", Align::right, Unit::bytes},
               {"in use of it", Align::right, Unit::bytes},
               {"capacity", Align::right, Unit::bytes},
               {"headroom", Align::right, Unit::bytes},
               {"why not", Align::left}},
              {}};
  for (const ReportRun& run : scenario.runs) {
    if (!judges_memory(run.result)) continue;
    const std::int64_t capacity = run.capacity > 0 ? run.capacity : scenario.capacity;
    const HeldBySoftware& held = run.result.software_held;
    const Fits answer = fits(run.result);
    const bool known_only_here = is_ok(run.result) || held.is_known();
    const std::int64_t needed = known_only_here ? bytes_that_must_fit(run.result) : run.needed;
    const std::int64_t in_use = held.is_known()     ? held.in_use
                                : is_ok(run.result) ? run.result.peak_device.total()
                                                    : run.result.need.in_use;
    const bool known = needed > 0;
    table.rows.push_back(
        {name_of(run), run.result.backend, std::string(answer == Fits::no ? "NO" : name_of(answer)),
         known ? Cell(needed) : Cell(), known_count(held.low), known_count(held.high),
         known_count(in_use), capacity > 0 ? Cell(capacity) : Cell(),
         known && capacity > 0 ? Cell(capacity - needed) : Cell(), run.result.message});
  }
  std::string text =
      scenario.capacity > 0
          ? "A rank has " + format_bytes(scenario.capacity) + " of device memory."
          : "Runs have the capacities that they were given; without one no limit is known.";
  text +=
      " A strategy needs what its memory pools reserve; what is reserved and not in use is lost to "
      "fragmentation. What other software than this core needs is a prediction: of its tensors, "
      "what "
      "its allocator reserves for them, context and libraries, with an error bar.";
  return {"What fits", {{"", text, "", without_empty_columns(std::move(table))}}};
}

ReportSection accuracy_section(const ReportScenario& scenario) {
  std::map<std::string, std::vector<RunResult>> by_scenario;
  for (const ReportRun& run : scenario.runs) by_scenario[run.scenario_hash].push_back(run.result);
  ReportPart part;
  BarChart chart;
  chart.unit = Unit::seconds;
  chart.series = {"simulated step time"};
  chart.mark_text = "measured";
  for (const ReportRun& run : scenario.runs) {
    if (run.result.predicted || !is_ok(run.result)) continue;
    for (const RunResult& twin : by_scenario[run.scenario_hash]) {
      if (!twin.predicted || !is_ok(twin)) continue;
      const Table pair = prediction_table(std::vector{run.result, twin});
      part.table.columns = pair.columns;
      for (const auto& row : pair.rows) {
        part.table.rows.push_back(row);
        part.table.rows.back()[0] = name_of(run);
        chart.bars.push_back({run_label(run),
                              {twin.step_time.median},
                              twin.step_time_low,
                              twin.step_time_high,
                              run.result.step_time.median,
                              std::get<std::string>(row[3]),
                              std::get<std::string>(row[4]) == "NO"});
      }
    }
  }
  if (part.table.rows.empty()) {
    part.text = "Nothing of this scenario was both simulated and measured.";
    part.table = {};
    return {"Simulated and measured", {part}};
  }
  part.text =
      "The error is that of the simulated step time, relative to the measured one; error bars hold "
      "nine out of ten if errors are normal. Memory and traffic are compared to the byte.";
  chart.text = {"Simulated against measured step time of " + scenario.name,
                "One bar per strategy: the simulated step time with its error bar; a diamond is "
                "the measured one. The table has the same numbers."};
  part.svg = svg_bars(chart);
  return {"Simulated and measured", {part}};
}

std::vector<ReportSection> report_sections(const ReportScenario& scenario) {
  std::vector<ReportSection> sections;
  for (const auto section :
       {summary_section, training_section, fits_section, memory_section, step_time_section,
        throughput_section, communication_section, timeline_section, accuracy_section}) {
    sections.push_back(section(scenario));
    if (sections.back().parts.empty()) sections.pop_back();
  }
  return sections;
}

Table environment_table(const std::vector<ReportEnvironment>& environments) {
  Table table{{{"host", Align::left},
               {"processor", Align::left},
               {"cores"},
               {"memory", Align::right, Unit::bytes},
               {"GPU", Align::left},
               {"driver", Align::left},
               {"system", Align::left},
               {"kernel", Align::left},
               {"compiler", Align::left},
               {"build", Align::left},
               {"commit", Align::left},
               {"runs", Align::left},
               {"first", Align::left},
               {"last", Align::left}},
              {}};
  const auto text = [](const std::string& value) { return value.empty() ? Cell() : Cell(value); };
  for (const ReportEnvironment& each : environments) {
    const Environment& e = each.environment;
    table.rows.push_back({e.host, e.cpu, std::int64_t{e.cores}, e.memory_bytes, text(e.gpu),
                          text(e.driver), e.os, e.kernel, e.compiler, e.build, e.commit,
                          fmt::format("{}", fmt::join(each.runs, ", ")), minute_of(each.first),
                          minute_of(each.last)});
  }
  return table;
}

}  // namespace zl
