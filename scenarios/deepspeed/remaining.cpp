#include "scenarios/deepspeed/remaining.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace zl {
namespace {

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  if (!a.is_string() || !b.is_string()) return a == b;
  const auto& left = a.get_ref<const std::string&>();
  const auto& right = b.get_ref<const std::string&>();
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(),
      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

void finish_fixed(Keys& keys, const GivenKey& key) {
  const Json standard = Json::parse(key.spec->standard);
  if (key.is_auto || key.value->is_null()) {
    keys.effects().record(key.path, standard, EffectStatus::defaulted, "");
    return;
  }
  if (same_value(*key.value, standard)) {
    keys.effects().record(key.path, standard, EffectStatus::honoured, "");
    return;
  }
  if (key.spec->consequence == Consequence::refuse) {
    keys.effects().refuse(key.path, std::string(key.spec->why));
    return;
  }
  keys.effects().record(key.path, standard, EffectStatus::not_implemented,
                        std::string(key.spec->why));
  if (key.spec->consequence == Consequence::warn) {
    keys.effects().warn_ignored(key.key, std::string(key.spec->why));
  }
}

void finish_detail(Keys& keys, const GivenKey& key) {
  for (std::string section = key.path; section.find('.') != std::string::npos;) {
    section = section.substr(0, section.rfind('.'));
    for (const char* name : {".enabled", ".device", ".shared_parameters.enabled", ".mode"}) {
      const GivenKey* feature = keys.given(section + name);
      if (feature == nullptr || feature == &key) continue;
      const Effect* row = keys.effects().row_of(*feature);
      if (row != nullptr && row->status == EffectStatus::not_implemented) {
        keys.effects().record(key.path, nullptr, EffectStatus::not_implemented,
                              "see " + feature->key);
        return;
      }
    }
  }
  keys.effects().record(key.path, nullptr, EffectStatus::honoured, "no effect: its feature is off");
}

}  // namespace

void finish_remaining(Keys& keys) {
  for (const GivenKey& key : keys.effects().keys()) {
    if (!key.rejection.empty() || keys.effects().row_of(key) != nullptr) continue;
    if (key.spec->handling == Handling::fixed) finish_fixed(keys, key);
    if (key.spec->handling == Handling::ignored) {
      const std::string why = "DeepSpeed ignores it here; " + std::string(key.spec->why);
      keys.effects().record(key.path, nullptr, EffectStatus::honoured, "no effect: " + why);
      keys.effects().warn_ignored(key.key, why);
    }
    if (key.spec->handling == Handling::moot) {
      keys.effects().record(key.path, *key.value, EffectStatus::honoured,
                            "no effect: " + std::string(key.spec->why));
    }
  }
  // Details last: they follow the switch of their feature.
  for (const GivenKey& key : keys.effects().keys()) {
    if (key.rejection.empty() && keys.effects().row_of(key) == nullptr) finish_detail(keys, key);
  }
}

}  // namespace zl
