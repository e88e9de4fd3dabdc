#include "results/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/cells.h"

namespace zl {
namespace {

bool ran(const RunResult& run) { return run.steps > 0; }

Cell last_loss(const RunResult& run) {
  return run.loss.empty() ? Cell() : Cell(fmt::format("{:.4f}", run.loss.back()));
}

Cell error_bar(const RunResult& run) {
  const double median = run.step_time.median;
  if (!run.predicted || median <= 0) return {};
  const double half = (run.step_time_high - run.step_time_low) / 2;
  return fmt::format("±{:.0f} %", half / median * 100);
}

std::vector<MemoryTag> used_tags(std::span<const RunResult> results) {
  std::vector<MemoryTag> tags;
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto uses = [i](const RunResult& run) { return run.peak_device.tag[i] != 0; };
    if (std::any_of(results.begin(), results.end(), uses)) {
      tags.push_back(static_cast<MemoryTag>(i));
    }
  }
  return tags;
}

Cell bytes(const RunResult& run, std::int64_t count) { return ran(run) ? Cell(count) : Cell(); }

}  // namespace

Table summary_table(std::span<const RunResult> results) {
  const std::vector<MemoryTag> tags = used_tags(results);
  const bool any_simulated = std::any_of(results.begin(), results.end(),
                                         [](const RunResult& run) { return run.predicted; });
  Table table{{{"strategy", Align::left},
               {"backend", Align::left},
               {"outcome", Align::left},
               {"loss"},
               {"tokens/s"},
               {"step time", Align::right, Unit::seconds}},
              {}};
  if (any_simulated) table.columns.push_back({"error bar"});
  table.columns.push_back({"peak memory", Align::right, Unit::bytes});
  for (const MemoryTag tag : tags) {
    table.columns.push_back({name_of(tag), Align::right, Unit::bytes});
  }
  const auto any = [&](auto member) {
    return std::any_of(results.begin(), results.end(),
                       [&](const RunResult& run) { return (run.*member).total() > 0; });
  };
  const bool host = any(&RunResult::peak_host), files = any(&RunResult::peak_nvme);
  if (host) table.columns.push_back({"host memory", Align::right, Unit::bytes});
  if (files) table.columns.push_back({"files", Align::right, Unit::bytes});
  table.columns.push_back({"wire/step", Align::right, Unit::bytes});
  for (const RunResult& run : results) {
    auto& row = table.rows.emplace_back();
    row = {run.strategy, run.backend, std::string(name_of(run.outcome)), last_loss(run)};
    row.push_back(run.tokens_per_second > 0
                      ? Cell(std::llround(std::min(run.tokens_per_second, 9e18)))
                      : Cell());
    row.push_back(positive(run.step_time.median));
    if (any_simulated) row.push_back(error_bar(run));
    row.push_back(bytes(run, run.peak_device.total()));
    for (const MemoryTag tag : tags) {
      row.push_back(bytes(run, run.peak_device.tag[static_cast<std::size_t>(tag)]));
    }
    if (host) row.push_back(bytes(run, run.peak_host.total()));
    if (files) row.push_back(bytes(run, run.peak_nvme.total()));
    row.push_back(bytes(run, run.wire_bytes_per_step));
  }
  return table;
}

Table flat_table(std::span<const RunResult> results) {
  Table table;
  for (const char* name : {"strategy", "backend", "outcome", "message", "ranks", "steps", "run_id",
                           "final_loss", "tokens_per_second", "step_time_seconds", "step_time_low",
                           "step_time_high", "mfu", "peak_device_bytes"}) {
    table.columns.push_back({name});
  }
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    table.columns.push_back({std::string(name_of(static_cast<MemoryTag>(i))) + "_bytes"});
  }
  table.columns.push_back({"wire_bytes_per_step"});
  for (const RunResult& run : results) {
    auto& row = table.rows.emplace_back();
    row = {run.strategy,
           run.backend,
           std::string(name_of(run.outcome)),
           run.message,
           std::int64_t{run.ranks},
           run.steps,
           run.run_id != 0 ? Cell(run.run_id) : Cell(),
           run.loss.empty() ? Cell() : Cell(run.loss.back()),
           positive(run.tokens_per_second),
           positive(run.step_time.median),
           positive(run.step_time_low),
           positive(run.step_time_high),
           positive(run.mfu),
           bytes(run, run.peak_device.total())};
    for (const std::int64_t tag_bytes : run.peak_device.tag) row.push_back(bytes(run, tag_bytes));
    row.push_back(bytes(run, run.wire_bytes_per_step));
  }
  return table;
}

Table prediction_table(std::span<const RunResult> results) {
  Table table{{{"strategy", Align::left},
               {"measured", Align::right, Unit::seconds},
               {"predicted", Align::right, Unit::seconds},
               {"error", Align::right},
               {"in error bar", Align::left},
               {"memory equal", Align::left},
               {"wire bytes equal", Align::left}},
              {}};
  const auto yes_no = [](bool yes) { return std::string(yes ? "yes" : "NO"); };
  for (const RunResult& real : results) {
    if (real.predicted || real.outcome != Outcome::ok) continue;
    const auto twin = std::find_if(results.begin(), results.end(), [&](const RunResult& run) {
      return run.predicted && run.strategy == real.strategy && run.outcome == Outcome::ok;
    });
    if (twin == results.end() || real.step_time.median <= 0) continue;
    const double measured = real.step_time.median, predicted = twin->step_time.median;
    table.rows.push_back(
        {real.strategy, measured, predicted,
         fmt::format("{:+.1f} %", (predicted / measured - 1) * 100),
         yes_no(measured >= twin->step_time_low && measured <= twin->step_time_high),
         yes_no(real.peak_device.tag == twin->peak_device.tag),
         yes_no(real.wire_bytes_per_step == twin->wire_bytes_per_step)});
  }
  return table;
}

}  // namespace zl
