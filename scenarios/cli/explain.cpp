// `zerolab explain`: where the time and the bytes of a prediction go, and what would change it
// most.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "results/run_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/software_memory_table.h"
#include "scenarios/run/explain_tables.h"

namespace zl::cli {
namespace {

struct ExplainOptions {
  ScenarioOptions scenario;
  std::string format = "table";
  std::int64_t top = 12;  // 0: all
};

// Rows of people's tables beyond `top` are left to -o json.
Table cut(Table table, std::int64_t top, Format format) {
  const auto most = static_cast<std::size_t>(top);
  if (format != Format::json && top > 0 && table.rows.size() > most) table.rows.resize(most);
  return table;
}

Json explained_json(const Explanation& why) {
  const RunResult& run = why.result;
  const auto rows = [](const Table& table) { return Json::parse(render(table, Format::json)); };
  Json all = {{"strategy", run.strategy},
              {"model", run.setup.model},
              {"cluster", run.setup.cluster},
              {"software", run.setup.software.empty() ? Json() : Json(run.setup.software)},
              {"priced_from", run.priced_from},
              {"step_time_seconds", run.step_time.median},
              {"step_time_low", run.step_time_low},
              {"step_time_high", run.step_time_high},
              {"peak_device_bytes", run.peak_device.total()},
              {"parts", rows(parts_table(run))},
              {"step", rows(step_table(why))},
              {"peak", rows(peak_table(why))},
              {"levers", rows(lever_table(why))}};
  if (const auto& bytes = why.software.bytes) {
    all["software_bytes"] = software_bytes_json(*bytes);
    all["software_peak"] = rows(software_parts_table(*bytes));
  }
  return all;
}

// "Of a device of 80.00 GiB it takes 71.20 GiB (69.00 GiB to 73.50 GiB): it fits." Empty: no limit.
std::string of_device_said(const HeldBySoftware& held, std::int64_t capacity) {
  if (capacity == 0) return "";
  constexpr const char* kAnswers[] = {"it fits", "it may fit", "it does not fit"};
  return fmt::format("Of a device of {} it takes {} ({} to {}): {}.\n",
                     readable(capacity, Unit::bytes), readable(held.device, Unit::bytes),
                     readable(held.low, Unit::bytes), readable(held.high, Unit::bytes),
                     kAnswers[static_cast<std::size_t>(held.within(capacity))]);
}

// The bytes above are this core's; these are the software's.
std::string software_bytes_said(const SoftwareBytesOrWhy& software, std::int64_t capacity,
                                Format format, std::int64_t top) {
  if (!software.bytes) {
    const std::string& why = software.why_not;
    return why.empty() ? "" : "\nWhat that software itself would hold is not known: " + why + ".\n";
  }
  const SoftwareBytes& bytes = *software.bytes;
  const std::string text = fmt::format(
      "\nThese are bytes of this core, counted. {} itself would hold {}, 9 times out of 10 between "
      "{} and {}, at its peak in the {}. {}\n",
      bytes.software, readable(bytes.held.total(), Unit::bytes),
      readable(bytes.least(), Unit::bytes), readable(bytes.most(), Unit::bytes), bytes.held.when,
      of_device_said(bytes.of_device(), capacity) +
          (bytes.is_supported ? "" : "No published run supports that, so the bar is wide.\n"));
  return text + render(cut(software_parts_table(bytes), top, format), format);
}

std::string explained_text(const Explanation& why, Format format, std::int64_t top) {
  const RunResult& run = why.result;
  std::string text = setup_line(std::span(&run, 1)) + ", " + run.strategy + "\n";
  text += fmt::format(
      "A step takes {}, 9 times out of 10 between {} and {}; a rank holds {} at the "
      "peak.\n\n",
      readable(run.step_time.median, Unit::seconds), readable(run.step_time_low, Unit::seconds),
      readable(run.step_time_high, Unit::seconds), readable(run.peak_device.total(), Unit::bytes));
  text +=
      render(parts_table(run), format) + "\n" + render(cut(step_table(why), top, format), format);
  text += "\n" + render(cut(peak_table(why), top, format), format);
  text += software_bytes_said(why.software, run.device_capacity, format, top);
  if (!why.levers.empty()) text += "\n" + render(lever_table(why), format);
  return text;
}

int explain(const ExplainOptions& options) {
  const Format format = parse_format(options.format);
  if (format == Format::csv)
    throw Error(ErrorCode::usage, "--format: csv is one table; this is four");
  const Scenario scenario = load(options.scenario);
  Json all = Json::array();
  std::string text;
  for (const ImportedStrategy& each : scenario.strategies) {
    const Explanation why = zl::explain(scenario, each);
    if (format == Format::json) {
      all.push_back(explained_json(why));
    } else {
      text += (text.empty() ? "" : "\n") + explained_text(why, format, options.top);
    }
  }
  print(format == Format::json ? pretty(all.size() == 1 ? all[0] : all) : text);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "explain", "Where the time and the bytes of a prediction go, and what would change it most");
  const auto options = std::make_shared<ExplainOptions>();
  add_scenario_options(*sub, options->scenario);
  sub->add_option("--top", options->top, "Rows of each table; 0: all of them")
      ->check(CLI::Range(std::int64_t{0}, kMaxCount));
  add_format(*sub, options->format, "table, wide, md, json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return explain(*options); }; });
}

}  // namespace zl::cli
