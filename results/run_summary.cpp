// The table of a run that people read, and the lines around it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "results/cells.h"
#include "results/compare.h"
#include "results/run_tables.h"

namespace zl {
namespace {

using Results = std::span<const RunResult>;

bool any(Results results, const auto& has) {
  return std::any_of(results.begin(), results.end(), has);
}

// A thing that rows may share or differ in.
struct Shared {
  const char* name;
  Align align;
  Cell (*of)(const RunResult&);
};

// This core's own kernels; runs that were stored before it had a name say nothing.
constexpr auto kOwnSoftware = "zerolab";

bool is_own_on_a_data_sheet(const RunResult& run) {
  const std::string& software = run.setup.software;
  return rests_on_data_sheet(run) && (software.empty() || software == kOwnSoftware);
}

constexpr std::array kShared = {
    Shared{"model", Align::left, [](const RunResult& r) { return known_text(r.setup.model); }},
    Shared{"cluster", Align::left, [](const RunResult& r) { return known_text(r.setup.cluster); }},
    Shared{"ranks", Align::right, [](const RunResult& r) { return Cell(std::int64_t{r.ranks}); }},
    Shared{"precision", Align::left, [](const RunResult& r) { return known_text(r.precision); }},
    Shared{"software", Align::left,
           [](const RunResult& r) {
             return is_own_on_a_data_sheet(r) ? Cell(std::string(kOwnSoftware))
                                              : known_text(r.setup.software);
           }},
    Shared{"sequence", Align::right,
           [](const RunResult& r) { return known_count(r.setup.sequence_length); }},
    Shared{"micro-batch", Align::right,
           [](const RunResult& r) { return known_count(r.setup.micro_batch); }},
    Shared{"accumulation", Align::right,
           [](const RunResult& r) { return known_count(r.setup.gradient_accumulation); }},
    Shared{"tokens/step", Align::right,
           [](const RunResult& r) { return known_count(r.setup.tokens_per_step); }}};

bool is_shared(Results results, const Shared& each) {
  return !any(results, [&](const RunResult& run) { return each.of(run) != each.of(results[0]); });
}

// One column of a table, its cells still to be made.
struct Part {
  Column column;
  std::function<Cell(const RunResult&)> cell;
};

Cell fits_or_why(const RunResult& run) {
  return std::string(judges_memory(run) ? name_of(fits(run)) : name_of(run.outcome));
}

Cell last_loss(const RunResult& run) {
  return run.loss.empty() ? Cell() : Cell(fmt::format("{:.4f}", run.loss.back()));
}

Cell rate(const RunResult& run) {
  const double rate = run.tokens_per_second;
  return rate > 0 ? Cell(std::llround(std::min(rate, 9e18))) : Cell();
}

Cell error_bar(const RunResult& run) {
  const double median = run.step_time.median;
  if (!run.predicted || median <= 0) return {};
  return fmt::format("{:+.0f} .. {:+.0f} %", (run.step_time_low / median - 1) * 100,
                     (run.step_time_high / median - 1) * 100);
}

Cell memory(const RunResult& run) { return known_count(bytes_that_must_fit(run)); }

Cell headroom(const RunResult& run) {
  const std::int64_t needed = bytes_that_must_fit(run);
  if (run.device_capacity == 0 || needed == 0) return {};
  return run.device_capacity - needed;
}

Cell held(const RunResult& run, std::int64_t bytes) {
  return has_numbers(run) ? Cell(bytes) : Cell();
}

std::vector<Part> essential_parts(Results results) {
  std::vector<Part> parts;
  const auto add = [&](const char* name, Unit unit, auto cell, Align align = Align::right) {
    parts.push_back({{name, align, unit}, cell});
  };
  const auto strategy = [](const RunResult& run) { return Cell(run.strategy); };
  add("strategy", Unit::none, strategy, Align::left);
  for (const Shared& each : kShared) {
    if (!is_shared(results, each)) add(each.name, Unit::none, each.of, each.align);
  }
  const auto other_backend = [&](const RunResult& run) {
    return run.backend != results[0].backend;
  };
  if (any(results, other_backend)) {
    add(
        "backend", Unit::none, [](const RunResult& run) { return Cell(run.backend); }, Align::left);
  }
  if (any(results, [](const RunResult& run) {
        return run.outcome != Outcome::ok || fits(run) != Fits::yes;
      })) {
    add("fits", Unit::none, fits_or_why, Align::left);
  }
  if (any(results, [](const RunResult& run) { return !run.loss.empty(); })) {
    add("loss", Unit::none, last_loss);
  }
  add("step time", Unit::seconds,
      [](const RunResult& run) { return positive(run.step_time.median); });
  add("tokens/s", Unit::none, rate);
  add("MFU", Unit::fraction,
      [](const RunResult& run) { return run.mfu > 0 ? Cell(run.mfu) : Cell(); });
  add("memory", Unit::bytes, memory);
  add("headroom", Unit::bytes, headroom);
  if (any(results, [](const RunResult& run) { return run.predicted; })) {
    add("error bar", Unit::none, error_bar);
  }
  return parts;
}

void add_details(Results results, std::vector<Part>& parts) {
  const auto add = [&](const char* name, auto bytes) {
    parts.push_back({{name, Align::right, Unit::bytes},
                     [bytes](const RunResult& run) { return held(run, bytes(run)); }});
  };
  add("peak memory", [](const RunResult& run) { return run.peak_device.total(); });
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto of_tag = [i](const RunResult& run) { return run.peak_device.tag[i]; };
    if (!any(results, [&](const RunResult& run) { return of_tag(run) != 0; })) continue;
    add(name_of(static_cast<MemoryTag>(i)), of_tag);
  }
  const auto host = [](const RunResult& run) { return run.peak_host.total(); };
  const auto files = [](const RunResult& run) { return run.peak_nvme.total(); };
  if (any(results, [&](const RunResult& run) { return host(run) > 0; })) add("host memory", host);
  if (any(results, [&](const RunResult& run) { return files(run) > 0; })) add("files", files);
  add("wire/step", [](const RunResult& run) { return run.wire_bytes_per_step; });
}

Table table_of(Results results, const std::vector<Part>& parts) {
  Table table;
  for (const Part& part : parts) table.columns.push_back(part.column);
  for (const RunResult& run : results) {
    auto& row = table.rows.emplace_back();
    for (const Part& part : parts) row.push_back(part.cell(run));
  }
  return table;
}

}  // namespace

Table summary_table(Results results) { return table_of(results, essential_parts(results)); }

Table wide_table(Results results) {
  std::vector<Part> parts = essential_parts(results);
  add_details(results, parts);
  return table_of(results, parts);
}

std::string setup_line(Results results) {
  if (results.empty()) return "";
  const auto shared = [&](const char* name) -> std::string {
    const auto each = std::find_if(kShared.begin(), kShared.end(),
                                   [&](const Shared& s) { return std::string(s.name) == name; });
    const Cell cell = each->of(results[0]);
    const bool said = cell != Cell() && is_shared(results, *each);
    return said ? readable(cell, Unit::none) : "";
  };
  std::string line;
  const auto add = [&](const std::string& before, const std::string& what,
                       const std::string& after = "") {
    if (what.empty()) return;
    line += (line.empty() ? "" : ", ") + before + what + after;
  };
  add("", shared("model"));
  if (const std::string cluster = shared("cluster"); !cluster.empty()) {
    line += (line.empty() ? "" : " ") + ("on " + cluster);
  }
  add("", shared("ranks"), shared("ranks") == "1" ? " rank" : " ranks");
  add("", shared("precision"));
  add("sequences of ", shared("sequence"));
  add("micro-batch ", shared("micro-batch"));
  if (shared("accumulation") != "1") add("accumulation ", shared("accumulation"));
  add("", shared("tokens/step"), " tokens a step");
  add("as fast as ", shared("software"));
  return line;
}

std::string basis_line(Results results) {
  const auto from = [&](const char* basis) {
    return any(results, [&](const RunResult& run) { return run.priced_from == basis; });
  };
  if (from("guess")) {
    return "Times are guesses: this machine is not calibrated (zerolab calibrate).";
  }
  if (from("other precision")) {
    return "Times are less certain than their bars: this machine was calibrated in other "
           "precisions (zerolab calibrate --ranks " +
           std::to_string(results[0].ranks) + " --precision " + results[0].precision + ").";
  }
  if (from("other ranks")) {
    return "Times are less certain than their bars: this machine was calibrated with other numbers "
           "of ranks (zerolab calibrate --ranks " +
           std::to_string(results[0].ranks) + ").";
  }
  if (from("quiet calibration")) {
    return "Times are those of this machine when nothing else uses it (calibrate --moments quiet).";
  }
  if (any(results, is_own_on_a_data_sheet)) {
    return "Times rest on data sheets, of this core's fused kernels: PyTorch takes longer "
           "(--software torch-fsdp2-compile).";
  }
  if (from("no published run")) {
    return "Times rest on data sheets. Where bars are wide, no published run of this software on "
           "such GPUs under such a strategy supports them (zerolab validate).";
  }
  if (from("data sheet")) return "Times rest on data sheets: no such machine was calibrated.";
  return "";
}

}  // namespace zl
