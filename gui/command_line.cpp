#include "gui/command_line.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "scenarios/files/load_scenario.h"

namespace zl::gui {
namespace {

std::string quoted(const std::string& text) {
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-_./,:=+") == std::string::npos;
  if (plain && !text.empty()) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void set(const std::string& text, std::optional<std::int64_t>& out) { out = std::stoll(text); }
void set(const std::string& text, std::optional<std::string>& out) { out = text; }
void set(const std::string& text, std::optional<bool>& out) { out = text == "true"; }

std::string run_value_of(const Document& document, const RunKey& key) {
  return document.get(std::string("run.") + key.name);
}

ScenarioOverrides overrides_of(const Document& document) {
  ScenarioOverrides out;
  out.model = document.get("model");
  if (const std::string cluster = document.get("cluster"); !cluster.empty()) out.cluster = cluster;
  out.strategies = document.strategies();
  visit_run_keys([&](const RunKey& key, auto, auto given, auto) {
    const std::string value = run_value_of(document, key);
    if (!value.empty()) set(value, out.*given);
  });
  return out;
}

// " --steps 20"; of a flag " --no-deterministic".
std::string option_text(const RunKey& key, const std::string& value, auto) {
  return " " + option_of(key) + " " + quoted(value);
}
std::string option_text(const RunKey& key, const std::string& value, run_value::Flag) {
  const std::string option = option_of(key);
  return value == "true" ? " " + option : " --no-" + option.substr(2);
}

// Options that say all of the document, when names can.
std::optional<std::string> as_options(const Document& document, const std::string& hash,
                                      const std::string& command) {
  if (document.is_inline("model") || document.is_inline("cluster")) return std::nullopt;
  const std::vector<std::string> strategies = document.strategies();
  for (const std::string& strategy : strategies) {
    if (strategy.starts_with("{")) return std::nullopt;
  }
  try {
    if (content_hash(load_scenario("", overrides_of(document))) != hash) return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::string line = command + " --model " + quoted(document.get("model"));
  if (const std::string cluster = document.get("cluster"); !cluster.empty()) {
    line += " --cluster " + quoted(cluster);
  }
  if (!strategies.empty()) line += " --strategy " + quoted(join(strategies, ","));
  visit_run_keys([&](const RunKey& key, auto, auto, auto rule) {
    const std::string value = run_value_of(document, key);
    if (!value.empty()) line += option_text(key, value, rule);
  });
  return line;
}

bool is_as_opened(const Document& document) {
  try {
    return Document::open(document.source()) == document;
  } catch (const Error&) {
    return false;
  }
}

// The command with the document, as short as it can be said.
std::string line_of(const Document& document, const std::string& command) {
  if (is_as_opened(document)) return command + " " + quoted(document.source());
  const std::string hash = content_hash(scenario_from_json(document.text(), document.source()));
  if (const auto line = as_options(document, hash, command)) return *line;
  return "cat > scenario.json <<'END'\n" + document.text() + "\nEND\n" + command + " scenario.json";
}

}  // namespace

std::string command_line(const Document& document) {
  return line_of(document, "zerolab run") + " --backend sim";
}

std::string plan_command_line(const Document& document, std::int64_t global_batch, PlanGoal goal,
                              const std::string& limits) {
  std::string line = line_of(document, "zerolab plan");
  line += " --global-batch " + std::to_string(global_batch);
  if (goal == PlanGoal::memory) line += " --goal memory";
  return limits.empty() ? line : line + " --constrain " + quoted(limits);
}

}  // namespace zl::gui
