#include "results/stored_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/cells.h"

namespace zl {
namespace {

Cell loss_of(const RunSummary& run) { return std::isnan(run.final_loss) ? Cell() : run.final_loss; }

bool any_has(std::span<const RunSummary> runs, std::string RunSummary::*text) {
  return std::any_of(runs.begin(), runs.end(),
                     [text](const RunSummary& run) { return !(run.*text).empty(); });
}

bool differ(std::span<const RunSummary> runs, std::string RunSummary::*text) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const RunSummary& run) { return run.*text != runs.front().*text; });
}

}  // namespace

std::string minute_of(const std::string& time) {
  std::string text = time.substr(0, 16);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string steps_text(const RunSummary& run) {
  const std::int64_t last = run.first_step + run.steps;
  std::string text =
      run.first_step > 0 ? fmt::format("{} to {}", run.first_step + 1, last) : std::to_string(last);
  if (last < run.planned_steps) text += fmt::format(" of {}", run.planned_steps);
  return text;
}

Table stored_runs_table(std::span<const RunSummary> runs) {
  const bool tags = any_has(runs, &RunSummary::tags), notes = any_has(runs, &RunSummary::note);
  const bool software = differ(runs, &RunSummary::software);
  Table table{{{"run"},
               {"saved (UTC)", Align::left},
               {"scenario", Align::left},
               {"strategy", Align::left},
               {"backend", Align::left},
               {"outcome", Align::left},
               {"steps"},
               {"loss"},
               {"step time", Align::right, Unit::seconds},
               {"peak memory", Align::right, Unit::bytes}},
              {}};
  if (software) table.columns.push_back({"software", Align::left});
  if (tags) table.columns.push_back({"tags", Align::left});
  if (notes) table.columns.push_back({"note", Align::left});
  for (const RunSummary& run : runs) {
    auto& row = table.rows.emplace_back();
    row = {run.id,
           minute_of(run.saved_at),
           run.scenario_name,
           run.strategy,
           run.backend,
           std::string(name_of(run.outcome)),
           run.steps > 0 ? Cell(steps_text(run)) : Cell(),
           std::isnan(run.final_loss) ? Cell() : Cell(fmt::format("{:.4f}", run.final_loss)),
           positive(run.step_time_median),
           known_count(run.peak_device_bytes)};
    if (software) row.push_back(known_text(run.software));
    if (tags) row.push_back(known_text(run.tags));
    if (notes) row.push_back(known_text(run.note));
  }
  return table;
}

Table stored_runs_flat_table(std::span<const RunSummary> runs) {
  Table table;
  for (const char* name : {"run",
                           "saved_at",
                           "scenario",
                           "scenario_hash",
                           "model",
                           "cluster",
                           "software",
                           "strategy",
                           "backend",
                           "outcome",
                           "message",
                           "precision",
                           "ranks",
                           "sequence_length",
                           "micro_batch",
                           "gradient_accumulation",
                           "tokens_per_step",
                           "data",
                           "steps",
                           "first_step",
                           "planned_steps",
                           "final_loss",
                           "tokens_per_second",
                           "step_time_seconds",
                           "peak_device_bytes",
                           "wire_bytes_per_step",
                           "tags",
                           "note"}) {
    table.columns.push_back({name});
  }
  for (const RunSummary& run : runs) {
    table.rows.push_back({run.id,
                          run.saved_at,
                          run.scenario_name,
                          run.scenario_hash,
                          known_text(run.model),
                          known_text(run.cluster),
                          known_text(run.software),
                          run.strategy,
                          run.backend,
                          std::string(name_of(run.outcome)),
                          known_text(run.message),
                          known_text(run.precision),
                          std::int64_t{run.ranks},
                          known_count(run.sequence_length),
                          known_count(run.micro_batch),
                          known_count(run.gradient_accumulation),
                          known_count(run.tokens_per_step()),
                          known_text(run.data),
                          run.steps,
                          run.first_step,
                          known_count(run.planned_steps),
                          loss_of(run),
                          positive(run.tokens_per_second),
                          positive(run.step_time_median),
                          known_count(run.peak_device_bytes),
                          run.steps > 0 ? Cell(run.wire_bytes_per_step) : Cell(),
                          known_text(run.tags),
                          known_text(run.note)});
  }
  return table;
}

Table stored_run_table(const RunSummary& run, const RunResult& result, const Environment& machine) {
  Table table{{{"what", Align::left}, {"value", Align::left}}, {}};
  const auto add = [&table](const char* what, const Cell& value, Unit unit = Unit::none) {
    if (value != Cell()) table.rows.push_back({what, readable(value, unit)});
  };
  add("run", run.id);
  add("saved (UTC)", minute_of(run.saved_at));
  add("scenario", run.scenario_name);
  add("strategy", run.strategy);
  add("backend", run.backend);
  add("outcome", std::string(name_of(run.outcome)));
  add("message", known_text(run.message));
  add("tags", known_text(run.tags));
  add("note", known_text(run.note));
  add("model", known_text(run.model));
  add("cluster", known_text(run.cluster));
  add("software", known_text(run.software));
  add("precision", known_text(run.precision));
  add("ranks", std::int64_t{run.ranks});
  add("sequence length", known_count(run.sequence_length));
  add("micro-batch", known_count(run.micro_batch));
  add("gradient accumulation", known_count(run.gradient_accumulation));
  add("global batch (tokens)", known_count(run.tokens_per_step()));
  add("data", known_text(run.data));
  add("steps", steps_text(run));
  if (!result.loss.empty()) add("first loss", result.loss.front());
  add("last loss", loss_of(run));
  add("step time", positive(result.step_time.median), Unit::seconds);
  add("fastest step", positive(result.step_time.min), Unit::seconds);
  add("slowest step", positive(result.step_time.max), Unit::seconds);
  add("tokens per second", positive(result.tokens_per_second));
  add("MFU", positive(result.mfu), Unit::fraction);
  add("peak device memory", known_count(result.peak_device.total()), Unit::bytes);
  const HeldBySoftware& held = result.software_held;
  if (held.is_known()) {
    add("fits", std::string(name_of(fits(result))));
    add("the software in use", held.in_use, Unit::bytes);
    add("the software of the device", held.device, Unit::bytes);
    add("at least", held.low, Unit::bytes);
    add("at most", held.high, Unit::bytes);
  }
  add("peak host memory", known_count(result.peak_host.total()), Unit::bytes);
  add("peak of files", known_count(result.peak_nvme.total()), Unit::bytes);
  add("sent by a rank in a step", known_count(result.wire_bytes_per_step), Unit::bytes);
  add("machine", fmt::format("{}: {}, {} cores{}", machine.host, machine.cpu, machine.cores,
                             machine.gpu.empty() ? "" : ", " + machine.gpu));
  add("zerolab", known_text(machine.commit));
  for (const std::string& warning : result.warnings) add("warning", warning);
  return table;
}

}  // namespace zl
