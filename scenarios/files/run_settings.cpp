#include "scenarios/files/run_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

std::int64_t bounded(const Json& value, const std::string& where, run_value::Whole range) {
  const std::int64_t number = integer_at(value, where);
  if (number < range.minimum || number > range.maximum) {
    throw Error(ErrorCode::invalid, where + ": " + std::to_string(number) + " is not in " +
                                        std::to_string(range.minimum) + ".." +
                                        std::to_string(range.maximum));
  }
  return number;
}

template <class Member>
void read(const Json& value, const std::string& where, run_value::Whole range, Member& out) {
  out = static_cast<Member>(bounded(value, where, range));
}

void read(const Json& value, const std::string& where, run_value::Bytes, std::int64_t& out) {
  try {
    out = value.is_string() ? parse_bytes(value.get<std::string>())
                            : bounded(value, where, {0, INT64_MAX});
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.code(), message.starts_with(where) ? message : where + ": " + message);
  }
}

void read(const Json& value, const std::string& where, run_value::Bandwidth, double& out) {
  if (value.is_number() && value.get<double>() >= 0) {
    out = value.get<double>();
    return;
  }
  try {
    out = parse_bandwidth(value.is_string() ? value.get<std::string>() : shown(value));
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  }
}

void read(const Json& value, const std::string& where, run_value::Precision,
          std::optional<DType>& out) {
  const std::string text = text_at(value, where);
  try {
    out = parse_dtype(text);
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

void write(const char* name, const std::optional<DType>& value, Json& out) {
  if (value) out[name] = name_of(*value);
}
template <class Value>
void write(const char* name, const Value& value, Json& out) {
  out[name] = value;
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
  visit_run_keys([&](const RunKey& key, auto member, auto, auto) {
    const bool said = run.*member != defaults.*member;
    const bool written = key.written == RunKey::Written::always ||
                         (key.written == RunKey::Written::when_not_default && said);
    if (written) write(key.name, run.*member, out);
  });
  return out;
}

}  // namespace zl
