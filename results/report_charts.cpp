// The sections of a report that show a chart beside each table.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/bytes.h"
#include "results/report_sections.h"
#include "results/report_stages.h"

namespace zl {
namespace {

const TaggedBytes& peak_device(const ReportRun& run) { return run.result.peak_device; }

// Of a run that did not fit, only what it would have needed in all is known.
ChartBar memory_bar(const ReportRun& run) {
  ChartBar bar{run_label(run), {}, 0, 0, 0, "", false};
  for (const std::int64_t bytes : peak_device(run).tag) {
    bar.values.push_back(static_cast<double>(bytes));
  }
  if (is_ok(run.result)) return bar;
  bar.values.assign(kMemoryTags, 0);
  bar.values.push_back(static_cast<double>(run.needed));
  bar.note = run.needed > 0 ? format_bytes(run.needed) : "does not fit";
  bar.bad = true;
  return bar;
}

bool shows_memory(const ReportRun& run) {
  return is_ok(run.result) || run.result.outcome == Outcome::out_of_memory;
}

Table memory_table(const ReportScenario& scenario) {
  Table table{
      {{"strategy", Align::left}, {"backend", Align::left}, {"device", Align::right, Unit::bytes}},
      {}};
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    table.columns.push_back({name_of(static_cast<MemoryTag>(i)), Align::right, Unit::bytes});
  }
  for (const char* name : {"reserved", "host", "files"}) {
    table.columns.push_back({name, Align::right, Unit::bytes});
  }
  for (const ReportRun& run : scenario.runs) {
    if (!is_ok(run.result)) continue;
    auto& row = table.rows.emplace_back();
    row = {name_of(run), run.result.backend, run.result.peak_device.total()};
    for (const std::int64_t bytes : run.result.peak_device.tag) row.emplace_back(bytes);
    row.emplace_back(run.result.reserved_device);
    row.emplace_back(run.result.peak_host.total());
    row.emplace_back(run.result.peak_nvme.total());
  }
  return table;
}

struct TimePart {
  const char* name;
  double (*seconds)(const TimeBreakdown&);
};
constexpr TimePart kTimeParts[] = {
    {"compute", [](const TimeBreakdown& time) { return time.compute; }},
    {"exposed communication", [](const TimeBreakdown& time) { return time.exposed_data(); }},
    {"exposed tensor communication", [](const TimeBreakdown& time) { return time.exposed_tensor; }},
    {"exposed pipeline communication",
     [](const TimeBreakdown& time) { return time.exposed_pipeline; }},
    {"optimizer", [](const TimeBreakdown& time) { return time.optimizer; }},
    {"offload stall", [](const TimeBreakdown& time) { return time.offload_stall; }},
    {"bubble", [](const TimeBreakdown& time) { return time.bubble; }}};

// The interval that tokens per second have when the step time has its own.
std::pair<double, double> rate_interval(const RunResult& run) {
  if (run.step_time_low <= 0 || run.step_time_high <= 0) return {0, 0};
  const double tokens = run.tokens_per_second * run.step_time.median;
  return {tokens / run.step_time_high, tokens / run.step_time_low};
}

bool is_timed(const ReportRun& run) { return is_ok(run.result) && run.result.step_time.median > 0; }

std::string series_name(const CollectiveTotals& totals) {
  // Between tiers the direction matters; the link of a real run and of its simulation differ.
  if (totals.group == "tiers") return totals.collective + " (" + totals.link + ")";
  const std::string axis = totals.axis.empty() ? totals.group : totals.axis;  // of old databases
  return totals.collective + " (" + axis + (totals.group == "control" ? " control" : "") + ")";
}

double per_step(const CollectiveTotals& totals, const RunResult& run) {
  return static_cast<double>(totals.bytes) /
         static_cast<double>(std::max<std::int64_t>(1, run.steps));
}

}  // namespace

ReportSection memory_section(const ReportScenario& scenario) {
  BarChart chart;
  chart.text = {"Peak device memory by owner, " + scenario.name,
                "One stacked bar per strategy and backend; the line is the capacity of a device."};
  chart.unit = Unit::bytes;
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    chart.series.emplace_back(name_of(static_cast<MemoryTag>(i)));
  }
  chart.limit = static_cast<double>(scenario.capacity);
  chart.limit_text = "capacity " + format_bytes(scenario.capacity);
  bool any_too_large = false;
  for (const ReportRun& run : scenario.runs) {
    if (!shows_memory(run)) continue;
    chart.bars.push_back(memory_bar(run));
    any_too_large = any_too_large || run.needed > 0;
  }
  if (any_too_large) chart.series.emplace_back("needed, does not fit");
  const std::string text =
      "Of the rank with the highest peak, at that moment. The owners add up to \"device\"; "
      "\"reserved\" is what the memory pool took for them.";
  ReportSection section{
      "Memory", {{"", text, svg_bars(chart), without_empty_columns(memory_table(scenario))}}};
  for (const ReportRun& run : scenario.runs) {
    if (!run.result.stages.empty()) section.parts.push_back(stages_part(run));
  }
  return section;
}

ReportSection step_time_section(const ReportScenario& scenario) {
  BarChart chart;
  chart.text = {"Where the time of a step goes, " + scenario.name,
                "One stacked bar per strategy and backend; simulated times have an error bar."};
  chart.unit = Unit::seconds;
  Table table{{{"strategy", Align::left},
               {"backend", Align::left},
               {"step time", Align::right, Unit::seconds},
               {"low", Align::right, Unit::seconds},
               {"high", Align::right, Unit::seconds}},
              {}};
  for (const TimePart& part : kTimeParts) {
    chart.series.emplace_back(part.name);
    table.columns.push_back({part.name, Align::right, Unit::seconds});
  }
  chart.series.emplace_back("host and launch");
  table.columns.push_back({"host and launch", Align::right, Unit::seconds});
  table.columns.push_back({"beside the fastest", Align::left});
  for (const ReportRun& run : scenario.runs) {
    if (!is_timed(run)) continue;
    const RunResult& result = run.result;
    const bool predicted = result.predicted;
    // Measured steps vary: from the fastest to the slowest.
    const double low = predicted ? result.step_time_low : result.step_time.min;
    const double high = predicted ? result.step_time_high : result.step_time.max;
    auto& row = table.rows.emplace_back();
    row = {name_of(run), result.backend, result.step_time.median, positive(low), positive(high)};
    ChartBar bar{run_label(run), {}, low, high, 0, "", false};
    for (const TimePart& part : kTimeParts) {
      bar.values.push_back(part.seconds(result.time));
      row.emplace_back(part.seconds(result.time));
    }
    bar.values.push_back(host_seconds(result));
    row.emplace_back(host_seconds(result));
    row.push_back(known_text(run.beside_fastest));
    bar.note = readable(result.step_time.median, Unit::seconds);
    chart.bars.push_back(std::move(bar));
  }
  const std::string text =
      "The median step. Simulated: low and high hold nine out of ten if errors are normal. "
      "Measured: the fastest and the slowest step after the first. Beside the fastest: how many "
      "times as long a step takes as the shortest that differs in the strategy alone, with a bar "
      "of its own, since errors that both share cancel.";
  return {"Step time", {{"", text, svg_bars(chart), without_empty_columns(std::move(table))}}};
}

ReportSection throughput_section(const ReportScenario& scenario) {
  BarChart chart;
  chart.text = {"Tokens per second, " + scenario.name,
                "One bar per strategy and backend, all ranks together; simulated ones have an "
                "error bar."};
  chart.series = {"tokens per second"};
  Table table{{{"strategy", Align::left},
               {"backend", Align::left},
               {"tokens/s"},
               {"low"},
               {"high"},
               {"TFLOP/s per rank"},
               {"MFU", Align::right, Unit::fraction}},
              {}};
  for (const ReportRun& run : scenario.runs) {
    if (!is_timed(run)) continue;
    const RunResult& result = run.result;
    const auto [low, high] = rate_interval(result);
    const double flops =
        result.model_flops_per_step / result.step_time.median / std::max(1, result.ranks) / 1e12;
    table.rows.push_back({name_of(run), result.backend, result.tokens_per_second, positive(low),
                          positive(high), positive(flops), positive(result.mfu)});
    chart.bars.push_back({run_label(run),
                          {result.tokens_per_second},
                          low,
                          high,
                          0,
                          fmt::format("{:.0f}", result.tokens_per_second),
                          false});
  }
  const std::string text =
      "Of all ranks together. Model FLOPs by 6N + 12Lhs a token; MFU is their share of the peak.";
  return {"Throughput", {{"", text, svg_bars(chart), table}}};
}

ReportSection communication_section(const ReportScenario& scenario) {
  BarChart chart;
  chart.text = {"Bytes that a rank sends in a step, by collective, " + scenario.name,
                "One stacked bar per strategy and backend."};
  chart.unit = Unit::bytes;
  Table table{{{"strategy", Align::left},
               {"backend", Align::left},
               {"collective", Align::left},
               {"group", Align::left},
               {"axis", Align::left},
               {"link", Align::left},
               {"calls of the run"},
               {"bytes of the run", Align::right, Unit::bytes},
               {"bytes a step", Align::right, Unit::bytes}},
              {}};
  for (const ReportRun& run : scenario.runs) {
    const RunResult& result = run.result;
    if (!is_ok(result)) continue;
    ChartBar bar{run_label(run), {}, 0, 0, 0, "", false};
    for (const CollectiveTotals& totals : result.communication) {
      const double bytes = per_step(totals, result);
      table.rows.push_back({name_of(run), result.backend, totals.collective, totals.group,
                            totals.axis, totals.link, totals.count, totals.bytes, bytes});
      const auto name = std::find(chart.series.begin(), chart.series.end(), series_name(totals));
      const std::size_t at = name - chart.series.begin();
      if (name == chart.series.end()) chart.series.push_back(series_name(totals));
      bar.values.resize(std::max(bar.values.size(), at + 1));
      bar.values[at] += bytes;
    }
    chart.bars.push_back(std::move(bar));
  }
  const std::string text =
      "Wire bytes that one rank sends, by axis of the mesh, and what offload moves between tiers, "
      "averaged over all steps. The group \"control\" is loss, overflow flag, norm and stop vote.";
  return {"Communication", {{"", text, svg_bars(chart), table}}};
}

double host_seconds(const RunResult& run) {
  constexpr double kHalfPicosecond = 0.5e-12;  // what is less is rounding
  double rest = run.step_time.median;
  for (const TimePart& part : kTimeParts) rest -= part.seconds(run.time);
  return rest < kHalfPicosecond ? 0.0 : rest;
}

}  // namespace zl
