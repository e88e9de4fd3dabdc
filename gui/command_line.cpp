#include "gui/command_line.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "scenarios/files/scenario.h"

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

struct Option {
  const char* flag;
  const char* key;
};
constexpr Option kOptions[] = {{"--ranks", "run.ranks"},
                               {"--steps", "run.steps"},
                               {"--seed", "run.seed"},
                               {"--precision", "run.precision"},
                               {"--stack", "run.stack"},
                               {"--micro-batch", "run.micro_batch"},
                               {"--gradient-accumulation", "run.gradient_accumulation"},
                               {"--sequence-length", "run.sequence_length"},
                               {"--data", "run.data"},
                               {"--tokenizer", "run.tokenizer"},
                               {"--device-memory", "run.device_memory"}};

std::optional<std::int64_t> number(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return std::stoll(text);
}

std::optional<std::string> text_or_nothing(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

ScenarioOverrides overrides_of(const Document& document) {
  const auto run = [&](const char* key) { return document.get(std::string("run.") + key); };
  ScenarioOverrides out;
  out.model = document.get("model");
  out.cluster = text_or_nothing(document.get("cluster"));
  out.strategies = document.strategies();
  out.ranks = number(run("ranks"));
  out.steps = number(run("steps"));
  out.seed = number(run("seed"));
  out.sequence_length = number(run("sequence_length"));
  out.micro_batch = number(run("micro_batch"));
  out.gradient_accumulation = number(run("gradient_accumulation"));
  out.data = text_or_nothing(run("data"));
  out.tokenizer = text_or_nothing(run("tokenizer"));
  out.device_memory = text_or_nothing(run("device_memory"));
  out.precision = text_or_nothing(run("precision"));
  out.stack = text_or_nothing(run("stack"));
  return out;
}

// Options that say all of the document, when names can.
std::optional<std::string> as_options(const Document& document, const std::string& hash) {
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
  std::string line = "zerolab run --model " + quoted(document.get("model"));
  if (const std::string cluster = document.get("cluster"); !cluster.empty()) {
    line += " --cluster " + quoted(cluster);
  }
  if (!strategies.empty()) line += " --strategy " + quoted(join(strategies, ","));
  for (const Option& option : kOptions) {
    const std::string value = document.get(option.key);
    if (!value.empty()) line += std::string(" ") + option.flag + " " + quoted(value);
  }
  return line;
}

bool is_as_opened(const Document& document) {
  try {
    return Document::open(document.source()) == document;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string command_line(const Document& document) {
  const std::string backend = " --backend sim";
  if (is_as_opened(document)) return "zerolab run " + quoted(document.source()) + backend;
  const std::string hash = content_hash(scenario_from_json(document.text(), document.source()));
  if (const auto line = as_options(document, hash)) return *line + backend;
  return "cat > scenario.json <<'END'\n" + document.text() + "\nEND\nzerolab run scenario.json" +
         backend;
}

}  // namespace zl::gui
