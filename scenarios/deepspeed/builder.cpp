#include "scenarios/deepspeed/builder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace zl {

DeepSpeedBuilder::DeepSpeedBuilder(const std::vector<GivenKey>& keys, const ImportContext& context)
    : keys_(keys), context_(context) {
  for (const GivenKey& key : keys_) {
    if (key.rejection.empty()) {
      by_path_.emplace(key.path, &key);
    } else {
      Effect effect{key.key, key.value ? key.value->dump() : "", "", EffectStatus::rejected,
                    key.rejection};
      recorded_.emplace(key.key, effect);
      out_.rejections.push_back("strategy." + key.key + ": " + key.rejection);
    }
  }
}

const GivenKey* DeepSpeedBuilder::given(const std::string& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

bool DeepSpeedBuilder::is_set(const std::string& path) const {
  const GivenKey* key = given(path);
  return key != nullptr && !key->is_auto && !key->value->is_null();
}

Json DeepSpeedBuilder::value_of(const std::string& path, const AutoRule* rule) {
  const KeySpec* spec = find_key(path);
  ZL_CHECK(spec != nullptr, "no row for the key " + path);
  const GivenKey* key = given(path);
  if (is_set(path)) {
    record(path, *key->value, EffectStatus::honoured, "");
    return *key->value;
  }
  if (key != nullptr && key->is_auto && rule != nullptr) {
    const bool whole = spec->types & json_type::integer;
    const Json value = whole ? Json(static_cast<std::int64_t>(rule->value)) : Json(rule->value);
    record(path, value, EffectStatus::defaulted, "\"auto\": " + rule->why);
    return value;
  }
  const Json value = Json::parse(spec->standard);
  const char* owner = path.starts_with("x-zerolab") ? "zerolab" : "DeepSpeed";
  record(
      path, value, EffectStatus::defaulted,
      spec->why.empty() ? std::string(owner) + "'s default" : "default: " + std::string(spec->why));
  return value;
}

bool DeepSpeedBuilder::boolean(const std::string& path) {
  const Json value = value_of(path);
  return value.is_boolean() && value.get<bool>();
}

std::int64_t DeepSpeedBuilder::integer(const std::string& path, const AutoRule* rule) {
  return whole_number(value_of(path, rule)).value_or(0);
}

double DeepSpeedBuilder::number(const std::string& path, const AutoRule* rule) {
  const Json value = value_of(path, rule);
  return value.is_number() ? value.get<double>() : 0.0;
}

std::string DeepSpeedBuilder::text(const std::string& path) {
  const Json value = value_of(path);
  return value.is_string() ? value.get<std::string>() : "";
}

void DeepSpeedBuilder::record(const std::string& path, const Json& effective, EffectStatus status,
                              std::string why) {
  const GivenKey* key = given(path);
  Effect effect{key ? key->key : path, key ? key->value->dump() : "", effective.dump(), status,
                std::move(why)};
  const bool is_new = recorded_.insert_or_assign(effect.key, effect).second;
  if (is_new && key == nullptr) default_order_.push_back(effect.key);
}

void DeepSpeedBuilder::reject(const std::string& path, const std::string& why) {
  const GivenKey* key = given(path);
  const std::string name = key ? key->key : path;
  record(path, nullptr, EffectStatus::rejected, why);
  recorded_[name].effective.clear();
  out_.rejections.push_back("strategy." + name + ": " + why);
}

void DeepSpeedBuilder::refuse(const std::string& path, const std::string& why) {
  const GivenKey* key = given(path);
  record(path, nullptr, EffectStatus::not_implemented, "recognised, not implemented yet: " + why);
  out_.refusals.push_back("strategy." + (key ? key->key + ": " + key->value->dump() : path) +
                          " is recognised, not implemented yet: " + why);
}

void DeepSpeedBuilder::mark_unused(std::string_view prefix, const std::string& why) {
  for (const GivenKey& key : keys_) {
    if (key.rejection.empty() && key.path.starts_with(prefix) && !recorded_.contains(key.key)) {
      record(key.path, nullptr, EffectStatus::honoured, why);
    }
  }
}

ImportedStrategy DeepSpeedBuilder::build(std::string_view source_name) {
  out_.strategy.name = is_set("x-zerolab.name")
                           ? text("x-zerolab.name")
                           : std::filesystem::path(source_name).stem().string();
  // "zero-1.json" has a stem, a catalogue name such as "a-1.5b" must keep its dot.
  if (!is_set("x-zerolab.name") && !source_name.ends_with(".json")) {
    out_.strategy.name = std::string(source_name);
  }
  build_batch();
  build_zero();
  build_precision();
  build_gradients();
  build_recompute();
  build_optimizer();
  build_offload();
  build_schedule();
  build_checks();
  finish_remaining();
  for (const GivenKey& key : keys_) {
    if (const auto row = recorded_.find(key.key); row != recorded_.end()) {
      out_.effects.push_back(row->second);
    }
  }
  for (const std::string& key : default_order_) out_.effects.push_back(recorded_.at(key));
  return std::move(out_);
}

}  // namespace zl
