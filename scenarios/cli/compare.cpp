// `zerolab compare`: what changed between two runs, and whether it became worse.
#include "results/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "results/cells.h"
#include "results/stored_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/compare_sides.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "simulator/ratio.h"

namespace zl::cli {
namespace {

struct CompareOptions {
  CompareQuestion question;
  std::string fail_above;
  bool across = false;
  std::string format = "table";
};

struct Comparison {
  CompareSide a, b;
  std::vector<ConfigurationDifference> configured;
  std::vector<MetricDelta> deltas, worse;

  const RunResult& run_a() const { return representative(a.repeats); }
  const RunResult& run_b() const { return representative(b.repeats); }
};

// "zero-1 on cpu (run 12 of demo, 2026-11-22 13:46)".
std::string label(const CompareSide& side) {
  const RunResult& run = representative(side.repeats);
  std::string text = readable(run.strategy, Unit::none) + " on " + run.backend;
  if (run.outcome != Outcome::ok) text += std::string(", ") + name_of(run.outcome);
  if (run.run_id == 0) return text;
  std::string ids;
  for (const RunResult& each : side.repeats) {
    ids += (ids.empty() ? "" : ", ") + std::to_string(each.run_id);
  }
  return fmt::format("{} ({} {} of {}, {} UTC)", text, side.repeats.size() > 1 ? "runs" : "run",
                     ids, readable(side.scenario, Unit::none), minute_of(side.saved_at));
}

Unit unit_of(const std::string& metric) {
  if (metric.find("bytes") != std::string::npos) return Unit::bytes;
  if (metric == "mfu") return Unit::fraction;
  const bool time = metric.starts_with("time.") || metric.ends_with("seconds");
  return time ? Unit::seconds : Unit::none;
}

std::string verdict(const Comparison& pair, const MetricDelta& delta) {
  const auto same = [&](const MetricDelta& other) { return other.name == delta.name; };
  if (std::any_of(pair.worse.begin(), pair.worse.end(), same)) return "worse";
  if (delta.worse == Worse::informative || delta.absolute == 0 || !delta.is_noise()) return "";
  return std::isnan(delta.low) ? "too few steps to say" : "within noise";
}

std::string interval(const MetricDelta& delta) {
  if (std::isnan(delta.low)) return "";
  return fmt::format("{:+.1f} .. {:+.1f} %", delta.low * 100, delta.high * 100);
}

Table table_of(const Comparison& pair, bool readable_numbers) {
  const bool scatters = std::any_of(pair.deltas.begin(), pair.deltas.end(),
                                    [](const MetricDelta& delta) { return delta.scatters; });
  Table table{{{"metric", Align::left},
               {"a"},
               {"b"},
               {"difference"},
               {"relative", Align::right, Unit::fraction}},
              {}};
  if (scatters) table.columns.push_back({"95 % interval"});
  table.columns.push_back({"verdict", Align::left});
  for (const MetricDelta& delta : pair.deltas) {
    const Unit unit = unit_of(delta.name);
    const auto cell = [&](double value, bool there = true) {
      if (!there) return Cell();
      return readable_numbers ? Cell(readable(value, unit)) : Cell(value);
    };
    const bool outcome = delta.name == "failed";
    const bool a = outcome || has_numbers(pair.run_a()), b = outcome || has_numbers(pair.run_b());
    auto& row = table.rows.emplace_back();
    row = {delta.name, cell(delta.a, a), cell(delta.b, b), cell(delta.absolute, a && b),
           std::isfinite(delta.relative) ? Cell(delta.relative) : Cell()};
    if (scatters) row.push_back(known_text(interval(delta)));
    row.emplace_back(verdict(pair, delta));
  }
  return table;
}

Table configured_table(const Comparison& pair) {
  Table table{{{"configured differently", Align::left}, {"a", Align::left}, {"b", Align::left}},
              {}};
  for (const ConfigurationDifference& each : pair.configured) {
    table.rows.push_back({each.key, each.a, each.b});
  }
  return table;
}

Json run_reference(const CompareSide& side) {
  const RunResult& run = representative(side.repeats);
  Json ids = Json::array();
  for (const RunResult& each : side.repeats) {
    if (each.run_id != 0) ids.push_back(each.run_id);
  }
  return {{"strategy", run.strategy},
          {"backend", run.backend},
          {"scenario", side.scenario.empty() ? Json() : Json(side.scenario)},
          {"run_id", run.run_id != 0 ? Json(run.run_id) : Json()},
          {"runs", ids},
          {"saved_at", side.saved_at.empty() ? Json() : Json(side.saved_at)},
          {"outcome", name_of(run.outcome)}};
}

Json ratio_json(const Comparison& pair) {
  const auto ratio = sim::step_ratio(pair.run_a(), pair.run_b());
  if (!ratio) return {};
  return {{"value", ratio->value},
          {"low", ratio->low},
          {"high", ratio->high},
          {"decided", ratio->is_decided()}};
}

Json json_of(const Comparison& pair) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json metrics = Json::array(), worse = Json::array(), configured = Json::array();
  for (const ConfigurationDifference& each : pair.configured) {
    configured.push_back({{"key", each.key}, {"a", each.a}, {"b", each.b}});
  }
  for (const MetricDelta& delta : pair.deltas) {
    const bool known = std::isfinite(delta.low) && std::isfinite(delta.high);
    metrics.push_back({{"metric", delta.name},
                       {"a", finite(delta.a)},
                       {"b", finite(delta.b)},
                       {"difference", finite(delta.absolute)},
                       {"relative", finite(delta.relative)},
                       {"interval", known ? Json{delta.low, delta.high} : Json()},
                       {"verdict", verdict(pair, delta)}});
  }
  for (const MetricDelta& delta : pair.worse) worse.push_back(delta.name);
  return {{"a", run_reference(pair.a)},           {"b", run_reference(pair.b)},
          {"configured_differently", configured}, {"metrics", metrics},
          {"step_ratio", ratio_json(pair)},       {"regressions", worse}};
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
    if (!csv) {
      text += "a: " + label(pair.a) + "\nb: " + label(pair.b) + "\n\n";
      if (!pair.configured.empty()) text += render(configured_table(pair), format) + "\n";
    }
    text += render(table_of(pair, !csv), format);
    const std::string line = csv ? "" : sim::step_ratio_line(pair.run_a(), pair.run_b());
    if (!line.empty()) text += "\n" + line + ".\n";
  }
  return text;
}

// "ranks 4 and 8, run.seed 1 and 2, and 3 more".
std::string listed(const std::vector<ConfigurationDifference>& differences) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, differences.size()); ++i) {
    const ConfigurationDifference& each = differences[i];
    text += fmt::format("{}{} {} and {}", i == 0 ? "" : ", ", each.key, shortened(each.a),
                        shortened(each.b));
  }
  if (differences.size() > kNamed)
    text += fmt::format(", and {} more", differences.size() - kNamed);
  return text;
}

// What is worse by how much, as people say it.
std::string regression_text(const Comparison& pair, const MetricDelta& delta) {
  std::string text = label(pair.b) + ": " + delta.name;
  if (delta.name == "failed") return text + ": " + pair.run_b().message;
  text += std::isfinite(delta.relative) ? fmt::format(" {:+.1f} %", delta.relative * 100)
                                        : std::string(" is no longer a number, or is now one");
  if (delta.scatters) text += " (95 %: " + interval(delta) + ")";
  return text;
}

void judge(Comparison& pair, const CompareOptions& options, std::vector<std::string>& refusals) {
  const double threshold = parse_threshold(options.fail_above);
  if (!pair.configured.empty() && !options.across) {
    refusals.push_back(label(pair.a) + " and " + label(pair.b) +
                       " are configured differently: " + listed(pair.configured));
    return;
  }
  pair.worse = regressions(pair.deltas, threshold);
}

int compare_runs(const CompareOptions& options) {
  const Format format = parse_format(options.format);
  const bool gated = !options.fail_above.empty();
  if (gated) parse_threshold(options.fail_above);  // before anything is read
  std::vector<Comparison> pairs;
  std::vector<std::string> worse, refusals;
  for (auto& [a, b] : compare_sides(options.question)) {
    Comparison pair{a, b, side_differences(a, b), compare(a.repeats, b.repeats), {}};
    if (gated) judge(pair, options, refusals);
    for (const MetricDelta& delta : pair.worse) worse.push_back(regression_text(pair, delta));
    pairs.push_back(std::move(pair));
  }
  print(text_of(pairs, format));
  for (const std::string& line : worse) log_warning("regression: " + line);
  const bool once = std::any_of(pairs.begin(), pairs.end(), [](const Comparison& pair) {
    const auto scatters = [](const MetricDelta& delta) { return delta.scatters; };
    return pair.a.repeats.size() + pair.b.repeats.size() < 4 &&
           std::any_of(pair.worse.begin(), pair.worse.end(), scatters);
  });
  if (once) {
    log_info(
        "the interval is of the steps of these runs; what drifts between runs shows in repeats: "
        "compare 12,13,14,15 16,17,18,19");
  }
  if (!refusals.empty()) {
    throw Error(ErrorCode::usage,
                refusals.front() +
                    ". What is worse then is no regression: compare runs of one configuration, or "
                    "add --across-configurations");
  }
  return worse.empty() ? 0 : static_cast<int>(ErrorCode::regression);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("compare", "What changed between two runs");
  const auto options = std::make_shared<CompareOptions>();
  CompareQuestion& question = options->question;
  const char* what =
      "Run id, or ids of repeats (12,13,14); strategy: its newest run; or FILE[:STRATEGY] of `run "
      "-o "
      "json`";
  sub->add_option("a", question.a, what)->required();
  sub->add_option("b", question.b, what)->required();
  sub->add_option("--scenario", question.scenario, "Strategies: of this scenario");
  sub->add_option("--backend", question.backend, "Strategies and files: only of this backend");
  sub->add_option("--fail-above", options->fail_above,
                  "Exit 6 when b is worse by more, in percent (5, or 5%), and beyond the noise of "
                  "its steps");
  sub->add_flag("--across-configurations", options->across,
                "Let --fail-above judge runs that are configured differently");
  sub->add_option("--db", question.database, "Result database (see zerolab paths)");
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return compare_runs(*options); }; });
}

}  // namespace zl::cli
