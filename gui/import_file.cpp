#include "gui/import_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "scenarios/files/defaults.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_names.h"
#include "simulator/json/reading.h"

namespace zl::gui {
namespace {

bool is_database(const std::string& path) {
  char head[16] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof head);
  return std::string_view(head, 15) == "SQLite format 3";
}

// JSON begins with a brace, which comments may precede; what people write does not.
bool is_prose(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos &&
         std::string_view("{[/").find(text[begin]) == std::string_view::npos;
}

ImportedFile import_model(const std::string& path, const Document& current) {
  const ModelConfig model = load_model(path);
  // What was said for another model goes with it.
  Document next =
      current.with("model", path).with("run.micro_batch", "").with("run.sequence_length", "");
  std::string message = "model " + model.name + " from " + path;
  if (is_long_by_default(model)) {
    next = next.with("run.sequence_length", std::to_string(kUsualSequenceLength));
    message += fmt::format("; sequences of {}, not of the {} it can take", kUsualSequenceLength,
                           default_sequence_length(model));
  }
  return {ImportedFile::Kind::model, std::move(next), std::move(message), {}};
}

ImportedFile import_strategy(const std::string& path, const std::string& text,
                             const Document& current) {
  ImportContext context;
  try {
    const Scenario scenario = scenario_from_json(current.text(), current.source());
    context.ranks = scenario.run.ranks;
    const ImportedStrategy strategy = inspect_deepspeed(text, path, context);
    ImportedFile out{ImportedFile::Kind::strategy, std::nullopt, {}, effects_table(strategy)};
    std::vector<std::string> problems = strategy.rejections;
    problems.insert(problems.end(), strategy.refusals.begin(), strategy.refusals.end());
    if (!problems.empty()) {
      out.message = path + " was not taken: " + join(problems, "; ");
      return out;
    }
    std::vector<std::string> names = current.strategies();
    if (names.empty()) {
      for (const ImportedStrategy& each : scenario.strategies) names.push_back(each.strategy.name);
    }
    const std::vector<std::string> longer = with_strategy_file(names, path);
    const bool known = longer == names;
    out.document = known ? current : current.with_strategies(longer);
    out.message =
        (known ? "reloaded strategy " : "strategy ") + strategy.strategy.name + " from " + path;
    return out;
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

}  // namespace

ImportedFile import_file(const std::string& file, const Document& current) {
  const std::string path = std::filesystem::absolute(file).string();
  if (std::filesystem::is_directory(path)) return import_model(path, current);
  if (is_database(path)) return {ImportedFile::Kind::database, {}, "database " + path, {}};
  const std::string text = read_file(path);
  if (const std::string kind = binary_kind(text); !kind.empty()) {
    throw Error(ErrorCode::invalid, path + ": this is " + kind +
                                        "; of a model drop the folder that has its config.json");
  }
  if (is_prose(text)) {
    return {ImportedFile::Kind::data, current.with("run.data", path), "trains on " + path, {}};
  }
  const Json json = parse_json(text, path);
  if (!json.is_object()) throw Error(ErrorCode::invalid, path + ": not a JSON object");
  const FileKind kind = file_kind(json);
  if (kind == FileKind::scenario) {
    return {ImportedFile::Kind::scenario, Document::parse(text, path), "scenario " + path, {}};
  }
  if (kind == FileKind::model) return import_model(path, current);
  return import_strategy(path, text, current);
}

Table effects_table(const ImportedStrategy& strategy) {
  Table table;
  table.columns = {{"key", Align::left},
                   {"given", Align::left},
                   {"in force", Align::left},
                   {"status", Align::left},
                   {"why", Align::left}};
  const auto text = [](const std::string& value) { return value.empty() ? Cell() : Cell(value); };
  for (const Effect& effect : strategy.effects) {
    table.rows.push_back({effect.key, text(effect.given), text(effect.effective),
                          std::string(name_of(effect.status)), text(effect.why)});
  }
  return table;
}

}  // namespace zl::gui
