// `zerolab compare`: what changed between two runs, and whether it became worse.
#include "results/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/run_file.h"

namespace zl::cli {
namespace {

struct CompareOptions {
  std::string a, b;
  std::string scenario, backend;
  std::string fail_above;
  std::string database;
  std::string format = "table";
};

struct Comparison {
  RunResult a, b;
  std::vector<MetricDelta> deltas, worse;
};

std::string label(const RunResult& run) {
  std::string text = readable(run.strategy, Unit::none) + " on " + run.backend;
  if (run.outcome != Outcome::ok) text += std::string(", ") + name_of(run.outcome);
  return run.run_id != 0 ? fmt::format("{} (run {})", text, run.run_id) : text;
}

// "results.json" or "results.json:zero-2".
std::vector<RunResult> from_file(const std::string& text, const CompareOptions& options) {
  std::string path = text, strategy;
  if (!is_file(path)) {
    const std::size_t colon = text.rfind(':');
    path = text.substr(0, colon);
    strategy = text.substr(colon + 1);
  }
  std::vector<RunResult> runs = read_run_file(path);
  std::erase_if(runs, [&](const RunResult& run) {
    return (!strategy.empty() && run.strategy != strategy) ||
           (!options.backend.empty() && run.backend != options.backend);
  });
  if (runs.empty()) {
    throw Error(ErrorCode::invalid,
                path + ": no result of that strategy and backend, " + strategy + options.backend);
  }
  return runs;
}

RunResult from_database(const std::string& text, const CompareOptions& options) {
  const DatabaseOptions database{options.database, false};
  Store store = Store::open(database.path(), Store::Mode::read_only);
  const bool id = text.find_first_not_of("0123456789") == std::string::npos && text.size() < 19;
  if (id) {
    RunResult run = store.load(std::stoll(text));
    run.run_id = std::stoll(text);
    return run;
  }
  const auto found = store.list({"", options.scenario, text, options.backend, 1});
  if (found.empty()) {
    throw Error(ErrorCode::invalid,
                "\"" + text + "\" is no run id, no file, and no strategy with a stored run" +
                    (options.scenario.empty() ? "" : " of scenario " + options.scenario) + " in " +
                    database.path().string());
  }
  RunResult run = store.load(found.front().id);
  run.run_id = found.front().id;
  return run;
}

std::vector<RunResult> find_runs(const std::string& text, const CompareOptions& options) {
  const bool file = text.find(".json") != std::string::npos;
  return file ? from_file(text, options) : std::vector{from_database(text, options)};
}

// Two single runs are a pair whatever they are; of two files, results of the same strategy and
// backend are.
std::vector<Comparison> pair_up(const CompareOptions& options) {
  const std::vector<RunResult> all_a = find_runs(options.a, options);
  const std::vector<RunResult> all_b = find_runs(options.b, options);
  std::vector<Comparison> pairs;
  if (all_a.size() == 1 && all_b.size() == 1) {
    pairs.push_back({all_a[0], all_b[0], {}, {}});
    return pairs;
  }
  for (const RunResult& a : all_a) {
    const auto b = std::find_if(all_b.begin(), all_b.end(), [&](const RunResult& run) {
      return run.strategy == a.strategy && run.backend == a.backend;
    });
    if (b != all_b.end()) {
      pairs.push_back({a, *b, {}, {}});
    } else {
      log_warning(label(a) + " is only in " + options.a);
    }
  }
  if (pairs.empty()) {
    throw Error(ErrorCode::invalid, options.a + " and " + options.b +
                                        " have no strategy and backend in common; choose one "
                                        "result of each: FILE:STRATEGY");
  }
  return pairs;
}

Unit unit_of(const std::string& metric) {
  if (metric.find("bytes") != std::string::npos) return Unit::bytes;
  if (metric == "mfu") return Unit::fraction;
  const bool time = metric.starts_with("time.") || metric.ends_with("seconds");
  return time ? Unit::seconds : Unit::none;
}

const char* verdict(const Comparison& pair, const MetricDelta& delta) {
  const auto same = [&](const MetricDelta& other) { return other.name == delta.name; };
  if (std::any_of(pair.worse.begin(), pair.worse.end(), same)) return "worse";
  return "";
}

Table table_of(const Comparison& pair, bool readable_numbers) {
  Table table{{{"metric", Align::left},
               {"a"},
               {"b"},
               {"difference"},
               {"relative", Align::right, Unit::fraction},
               {"verdict", Align::left}},
              {}};
  for (const MetricDelta& delta : pair.deltas) {
    const Unit unit = unit_of(delta.name);
    const auto cell = [&](double value, bool there = true) {
      if (!there) return Cell();
      return readable_numbers ? Cell(readable(value, unit)) : Cell(value);
    };
    const bool outcome = delta.name == "failed";
    const bool a = outcome || has_numbers(pair.a), b = outcome || has_numbers(pair.b);
    table.rows.push_back({delta.name, cell(delta.a, a), cell(delta.b, b),
                          cell(delta.absolute, a && b),
                          std::isfinite(delta.relative) ? Cell(delta.relative) : Cell(),
                          std::string(verdict(pair, delta))});
  }
  return table;
}

Json run_reference(const RunResult& run) {
  return {{"strategy", run.strategy},
          {"backend", run.backend},
          {"run_id", run.run_id != 0 ? Json(run.run_id) : Json()},
          {"outcome", name_of(run.outcome)}};
}

Json json_of(const Comparison& pair) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json metrics = Json::array(), worse = Json::array();
  for (const MetricDelta& delta : pair.deltas) {
    metrics.push_back({{"metric", delta.name},
                       {"a", finite(delta.a)},
                       {"b", finite(delta.b)},
                       {"difference", finite(delta.absolute)},
                       {"relative", finite(delta.relative)}});
  }
  for (const MetricDelta& delta : pair.worse) worse.push_back(delta.name);
  return {{"a", run_reference(pair.a)},
          {"b", run_reference(pair.b)},
          {"metrics", metrics},
          {"regressions", worse}};
}

std::string text_of(const std::vector<Comparison>& pairs, Format format) {
  if (format == Format::json) {
    Json all = Json::array();
    for (const Comparison& pair : pairs) all.push_back(json_of(pair));
    return pretty({{"schema", 1}, {"comparisons", all}});
  }
  std::string text;
  for (const Comparison& pair : pairs) {
    const bool csv = format == Format::csv;
    if (!text.empty()) text += "\n";
    if (!csv) text += "a: " + label(pair.a) + "\nb: " + label(pair.b) + "\n\n";
    text += render(table_of(pair, !csv), format);
  }
  return text;
}

int compare_runs(const CompareOptions& options) {
  const Format format = parse_format(options.format);
  const bool gated = !options.fail_above.empty();
  const double threshold = gated ? parse_threshold(options.fail_above) : 0;
  std::vector<Comparison> pairs = pair_up(options);
  std::vector<std::string> worse;
  for (Comparison& pair : pairs) {
    pair.deltas = compare(pair.a, pair.b);
    if (gated) pair.worse = regressions(pair.deltas, threshold);
    for (const MetricDelta& delta : pair.worse) {
      worse.push_back(
          fmt::format("{}: {} {:+.1f} %", label(pair.b), delta.name, delta.relative * 100));
    }
  }
  print(text_of(pairs, format));
  for (const std::string& line : worse) log_warning("regression: " + line);
  return worse.empty() ? 0 : static_cast<int>(ErrorCode::regression);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("compare", "What changed between two runs");
  const auto options = std::make_shared<CompareOptions>();
  const char* what = "Run id, strategy (its newest run), or FILE[:STRATEGY] of `run -o json`";
  sub->add_option("a", options->a, what)->required();
  sub->add_option("b", options->b, what)->required();
  sub->add_option("--scenario", options->scenario, "Strategies: of this scenario");
  sub->add_option("--backend", options->backend, "Strategies and files: only of this backend");
  sub->add_option("--fail-above", options->fail_above, "Exit 6 when b is worse by more, as in 5%");
  sub->add_option("--db", options->database, "Result database (see zerolab paths)");
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return compare_runs(*options); }; });
}

}  // namespace zl::cli
