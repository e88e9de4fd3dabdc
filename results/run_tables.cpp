#include "results/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/cells.h"

namespace zl {
namespace {

bool ran(const RunResult& run) { return run.steps > 0; }

Cell bytes(const RunResult& run, std::int64_t count) { return ran(run) ? Cell(count) : Cell(); }

}  // namespace

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
  for (const char* name :
       {"wire_bytes_per_step", "host_bytes", "nvme_bytes", "reserved_bytes",
        "needed_reserved_bytes", "needed_in_use_bytes", "needed_host_bytes", "needed_nvme_bytes",
        "device_capacity_bytes", "model", "cluster", "software", "precision", "sequence_length",
        "micro_batch", "gradient_accumulation", "tokens_per_step", "data", "priced_from"}) {
    table.columns.push_back({name});
  }
  for (const char* name : {"fits", "software_in_use_bytes", "software_device_bytes",
                           "software_low_bytes", "software_high_bytes"}) {
    table.columns.push_back({name});
  }
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
    for (const std::int64_t held :
         {run.peak_host.total(), run.peak_nvme.total(), run.reserved_device}) {
      row.push_back(bytes(run, held));
    }
    const RunSetup& setup = run.setup;
    const bool needs = run.need.reserved > 0;
    for (const std::int64_t need :
         {run.need.reserved, run.need.in_use, run.need.host, run.need.nvme}) {
      row.push_back(needs ? Cell(need) : Cell());
    }
    row.push_back(known_count(run.device_capacity));
    for (const std::string* text :
         {&setup.model, &setup.cluster, &setup.software, &run.precision}) {
      row.push_back(known_text(*text));
    }
    for (const std::int64_t count : {setup.sequence_length, setup.micro_batch,
                                     setup.gradient_accumulation, setup.tokens_per_step}) {
      row.push_back(known_count(count));
    }
    row.push_back(known_text(setup.data));
    row.push_back(known_text(run.priced_from));
    row.push_back(judges_memory(run) ? Cell(std::string(name_of(fits(run)))) : Cell());
    const HeldBySoftware& held = run.software_held;
    for (const std::int64_t count : {held.in_use, held.device, held.low, held.high}) {
      row.push_back(known_count(count));
    }
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
