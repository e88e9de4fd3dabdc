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
  if (object.contains("stack")) {
    throw Error(ErrorCode::invalid, "run.stack: is now run.software (see zerolab show software)");
  }
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

ModelConfig for_task(ModelConfig model, const RunSettings& run) {
  if (!model.encoder) {
    const char* key = !run.task.empty() ? "task" : run.labels > 0 ? "labels" : nullptr;
    if (key == nullptr) return model;
    throw Error(ErrorCode::invalid, std::string("run.") + key + ": " + model.name +
                                        " is a decoder; give an encoder (family bert), or no " +
                                        key);
  }
  if (run.task == "classify") model.head = HeadKind::label;
  if (run.task == "mlm") model.head = HeadKind::masked_token;
  if (run.labels > 0) model.labels = run.labels;
  if (model.head == HeadKind::label && model.labels == 0) model.labels = 2;
  model.complete();
  return model;
}

void check_sequence_length(const RunSettings& run, const ModelConfig& model) {
  const std::string text = "run.sequence_length: " + std::to_string(run.sequence_length);
  if (model.position == PositionKind::learned && run.sequence_length > model.positions()) {
    throw Error(ErrorCode::invalid, text + " is above the " + std::to_string(model.positions()) +
                                        " learned positions of " + model.name +
                                        "; shorten it, or raise model.max_sequence");
  }
}

void check_evaluation(const RunSettings& run, const ModelConfig& model) {
  if (run.eval_data == "synthetic") {
    throw Error(ErrorCode::invalid,
                "run.eval_data: synthetic data have no end and nothing in them to learn; give a "
                "text, or a .bin of tokens");
  }
  if (model.encoder && run.eval_stride > 0) {
    throw Error(ErrorCode::invalid,
                "run.eval_stride: " + model.name +
                    " is an encoder, for which each text is a sequence of its own; leave it out");
  }
  if (run.eval_stride > run.sequence_length) {
    throw Error(ErrorCode::invalid,
                "run.eval_stride: " + std::to_string(run.eval_stride) +
                    " is above the sequence length " + std::to_string(run.sequence_length) +
                    ", so that tokens between would not count; give at most that");
  }
  if (!run.eval_data.empty() || run.data == kTestaments) return;  // which hold verses out
  const char* key = run.eval_every > 0     ? "eval_every"
                    : run.eval_stride > 0  ? "eval_stride"
                    : run.eval_samples > 0 ? "eval_samples"
                                           : "";
  if (*key == '\0') return;
  throw Error(ErrorCode::invalid,
              "run." + std::string(key) +
                  ": there is nothing to judge the model by; give run.eval_data "
                  "(--eval-data FILE), or leave it out");
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
