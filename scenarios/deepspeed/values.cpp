#include "scenarios/deepspeed/values.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace zl {

bool Keys::is_set(const std::string& path) const {
  const GivenKey* key = given(path);
  return key != nullptr && !key->is_auto && !key->value->is_null();
}

Json Keys::value(const std::string& path, const AutoRule* rule) {
  const KeySpec* spec = find_key(path);
  ZL_CHECK(spec != nullptr, "no row for the key " + path);
  const GivenKey* key = given(path);
  if (is_set(path)) {
    effects_.record(path, *key->value, EffectStatus::honoured, "");
    return *key->value;
  }
  if (key != nullptr && key->is_auto && rule != nullptr) {
    const bool whole = spec->types & json_type::integer;
    const Json value = whole ? Json(static_cast<std::int64_t>(rule->value)) : Json(rule->value);
    effects_.record(path, rule->is_open ? Json("auto") : value, EffectStatus::defaulted,
                    "\"auto\": " + rule->why);
    return value;
  }
  const Json value = Json::parse(spec->standard);
  const char* owner = path.starts_with("x-zerolab") ? "zerolab" : "DeepSpeed";
  effects_.record(
      path, value, EffectStatus::defaulted,
      spec->why.empty() ? std::string(owner) + "'s default" : "default: " + std::string(spec->why));
  return value;
}

bool Keys::boolean(const std::string& path) {
  const Json found = value(path);
  return found.is_boolean() && found.get<bool>();
}

std::int64_t Keys::integer(const std::string& path, const AutoRule* rule) {
  return whole_number(value(path, rule)).value_or(0);
}

double Keys::number(const std::string& path, const AutoRule* rule) {
  const Json found = value(path, rule);
  return found.is_number() ? found.get<double>() : 0.0;
}

std::string Keys::text(const std::string& path) {
  const Json found = value(path);
  return found.is_string() ? found.get<std::string>() : "";
}

DType Keys::type(const std::string& path, DType fallback) {
  if (is_set(path)) return parse_dtype(text(path));
  effects_.record(path, name_of(fallback), EffectStatus::defaulted,
                  "default: " + std::string(find_key(path)->why));
  return fallback;
}

bool lists(std::string_view list, std::string_view name) {
  return (" " + std::string(list) + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

void reject_others(Keys& keys, std::string_view section, std::string_view list,
                   const std::string& owner) {
  for (const GivenKey& key : keys.effects().keys()) {
    if (!key.rejection.empty() || !key.path.starts_with(section)) continue;
    if (!lists(list, std::string_view(key.path).substr(section.size()))) {
      keys.effects().reject(key.path,
                            "not a parameter of " + owner + "; it takes " + std::string(list));
    }
  }
}

}  // namespace zl
