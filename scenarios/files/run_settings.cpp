#include "scenarios/files/run_settings.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

std::int64_t whole(const Json& value, const std::string& where, std::int64_t kilo) {
  if (!value.is_string()) return integer_at(value, where);
  try {
    return parse_count(value.get<std::string>(), kilo);
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  }
}

template <class Member>
void read(const Json& value, const std::string& where, run_value::Whole range, Member& out) {
  const std::int64_t number = whole(value, where, range.kilo);
  if (number < range.minimum || number > range.maximum) {
    throw Error(ErrorCode::invalid, where + ": " + std::to_string(number) + " is not in " +
                                        std::to_string(range.minimum) + ".." +
                                        std::to_string(range.maximum));
  }
  out = static_cast<Member>(number);
}

// What `parse` makes of a text, or of a number too small to be one of bytes.
template <class Parse>
auto with_unit(const Json& value, const std::string& where, const Parse& parse) {
  try {
    return parse(value.is_string() ? value.get<std::string>() : shown(value));
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  }
}

bool is_in_bytes(const Json& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number == 0 || number >= run_value::kLeastBytes;
}

void read(const Json& value, const std::string& where, run_value::Bytes, std::int64_t& out) {
  out = is_in_bytes(value) ? integer_at(value, where) : with_unit(value, where, parse_bytes);
}

void read(const Json& value, const std::string& where, run_value::Bandwidth, double& out) {
  out = is_in_bytes(value) ? number_at(value, where) : with_unit(value, where, parse_bandwidth);
}

void read(const Json& value, const std::string& where, run_value::Precision,
          std::optional<DType>& out) {
  const std::string text = text_at(value, where);
  std::string name = text;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  try {
    out = parse_dtype(name);
  } catch (const Error&) {
    throw Error(ErrorCode::invalid,
                where + ": \"" + shortened(text) + "\" is not one of fp32, bf16, fp16");
  }
}

void read(const Json& value, const std::string& where, run_value::Text text, std::string& out) {
  out = text_at(value, where);
  const std::string choices = text.choices;
  if (choices.empty() || (", " + choices + ", ").find(", " + out + ", ") != std::string::npos) {
    return;
  }
  throw Error(ErrorCode::invalid, where + ": \"" + shortened(out) + "\" is not one of " + choices);
}

void read(const Json& value, const std::string& where, run_value::Flag, bool& out) {
  out = boolean_at(value, where);
}

template <class Rule, class Value>
Json written(Rule, const Value& value) {
  constexpr bool in_bytes =
      std::is_same_v<Rule, run_value::Bytes> || std::is_same_v<Rule, run_value::Bandwidth>;
  if constexpr (in_bytes) {
    if (value != 0 && value < run_value::kLeastBytes) return to_text(Json(value)) + "B";
  }
  return value;
}
Json written(run_value::Precision, const std::optional<DType>& value) {
  return value ? Json(name_of(*value)) : Json();
}

}  // namespace

std::string option_of(const RunKey& key) {
  std::string option = std::string("--") + key.name;
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

RunSettings read_run_settings(const Json& object) {
  std::vector<std::string> known;
  visit_run_keys([&known](const RunKey& key, auto...) { known.emplace_back(key.name); });
  check_keys(object, "run", known);
  RunSettings run;
  visit_run_keys([&](const RunKey& key, auto member, auto, auto rule) {
    if (!object.contains(key.name)) return;
    read(object[key.name], child_path("run", key.name), rule, run.*member);
  });
  return run;
}

void apply_overrides(const RunOverrides& overrides, Json& run) {
  visit_run_keys([&](const RunKey& key, auto, auto given, auto) {
    if (overrides.*given) run[key.name] = *(overrides.*given);
  });
}

void check_sequence_length(const RunSettings& run, const ModelConfig& model) {
  const std::string text = "run.sequence_length: " + std::to_string(run.sequence_length);
  if (model.position == PositionKind::learned && run.sequence_length > model.max_sequence) {
    throw Error(ErrorCode::invalid, text + " is above the " + std::to_string(model.max_sequence) +
                                        " learned positions of " + model.name +
                                        "; shorten it, or raise model.max_sequence");
  }
  if (model.sliding_window > 0 && run.sequence_length > model.sliding_window) {
    throw Error(ErrorCode::invalid, text + " is above model.sliding_window " +
                                        std::to_string(model.sliding_window) +
                                        "; attention here is full, so at most the window");
  }
}

Json run_settings_to_json(const RunSettings& run) {
  const RunSettings defaults;
  Json out = Json::object();
  visit_run_keys([&](const RunKey& key, auto member, auto, auto rule) {
    const bool said = run.*member != defaults.*member;
    const bool is_written = key.written == RunKey::Written::always ||
                            (key.written == RunKey::Written::when_not_default && said);
    if (is_written) out[key.name] = written(rule, run.*member);
  });
  return out;
}

}  // namespace zl
