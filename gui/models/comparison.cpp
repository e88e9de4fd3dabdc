#include "gui/models/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "gui/units.h"
#include "results/compare.h"
#include "simulator/ratio.h"

namespace zl::gui {
namespace {

using Json = nlohmann::ordered_json;

// The only strategy in place of the list, so that its keys are compared one by one.
Document flattened(const Document& document) {
  Json json = Json::parse(document.text());
  json.erase("name");
  if (json.contains("strategies") && json["strategies"].is_array() && !json["strategies"].empty()) {
    json["strategy"] = json["strategies"][0];
    json.erase("strategies");
  }
  return Document::parse(json.dump(), document.source());
}

Unit unit_of(const std::string& metric) {
  if (metric.find("bytes") != std::string::npos) return Unit::bytes;
  if (metric.find("seconds") != std::string::npos || metric.starts_with("time.")) {
    return Unit::seconds;
  }
  return metric == "mfu" ? Unit::fraction : Unit::none;
}

using Holders = std::map<std::pair<std::string, std::string>, std::int64_t>;

Holders holders_at_peak(const StrategyStudy& strategy) {
  Holders holders;
  const Trace& trace = strategy.recording->trace;
  const std::int32_t event = sim::peak_event(trace, MemorySpace::device);
  for (const auto& block : sim::live_after(trace, event, MemorySpace::device)) {
    holders[{zl::name_of(block.tag), block.what}] += block.bytes;
  }
  return holders;
}

bool is_of_step_time(const std::string& metric) {
  return metric == "step_time_seconds" || metric == "tokens_per_second" || metric == "mfu";
}

std::string verdict(const MetricDelta& delta, bool times_are_decided) {
  if (delta.worse == Worse::informative || delta.absolute == 0) return "";
  if (!times_are_decided && is_of_step_time(delta.name)) return "not decided";
  const bool worse = (delta.worse == Worse::more) == (delta.absolute > 0);
  return worse ? "✗ worse" : "✓ better";
}

}  // namespace

Table configuration_differences(const Document& a, const Document& b) {
  Table table;
  table.columns = {{"A", Align::left}, {"B", Align::left}, {"key", Align::left}};
  const Document left = flattened(a), right = flattened(b);
  for (const std::string& key : Document::differences(left, right)) {
    const auto shown = [&key](const Document& document) {
      const std::string value = document.get(key);
      return value.empty() ? std::string("-") : value;
    };
    table.rows.push_back({shown(left), shown(right), key});
  }
  return table;
}

Table metric_differences(const RunResult& a, const RunResult& b) {
  Table table;
  table.columns = {
      {"metric", Align::left}, {"B is", Align::left}, {"change", Align::right, Unit::fraction},
      {"A", Align::right},     {"B", Align::right},   {"B - A", Align::right}};
  const auto ratio = sim::step_ratio(a, b);
  const bool decided = !ratio || ratio->is_decided();
  for (const MetricDelta& delta : compare(a, b)) {
    const Unit unit = unit_of(delta.name);
    const auto text = [unit](double value) { return value_text(value, unit).toStdString(); };
    const Cell change = std::isfinite(delta.relative) ? Cell(delta.relative) : Cell();
    table.rows.push_back({delta.name, verdict(delta, decided), change, text(delta.a), text(delta.b),
                          text(delta.absolute)});
  }
  return table;
}

Table memory_contributors(const StrategyStudy& a, const StrategyStudy& b) {
  Holders left = holders_at_peak(a), right = holders_at_peak(b);
  for (const auto& [key, bytes] : right) left.try_emplace(key, 0);
  struct Row {
    std::pair<std::string, std::string> key;
    std::int64_t a, b;
  };
  std::vector<Row> rows;
  for (const auto& [key, bytes] : left) {
    if (bytes != right[key]) rows.push_back({key, bytes, right[key]});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
    return std::abs(x.b - x.a) > std::abs(y.b - y.a);
  });
  Table table;
  table.columns = {{"B - A", Align::right, Unit::bytes},
                   {"tag", Align::left},
                   {"what", Align::left},
                   {"A", Align::right, Unit::bytes},
                   {"B", Align::right, Unit::bytes}};
  for (const Row& row : rows) {
    table.rows.push_back({row.b - row.a, row.key.first, row.key.second, row.a, row.b});
  }
  return table;
}

Document one_strategy_document(const Study& study, const StrategyStudy& strategy) {
  return Document::parse(canonical_json(with_one_strategy(study.scenario, strategy.imported)),
                         study.scenario.name);
}

}  // namespace zl::gui
