#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/builder.h"

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

}  // namespace

void DeepSpeedBuilder::finish_remaining() {
  for (const GivenKey& key : keys_) {
    if (!key.rejection.empty() || recorded_.contains(key.key)) continue;
    if (key.spec->handling == Handling::fixed) finish_fixed(key);
    if (key.spec->handling == Handling::moot) {
      record(key.path, *key.value, EffectStatus::honoured,
             "no effect: " + std::string(key.spec->why));
    }
  }
  // Details last: they follow the switch of their feature.
  for (const GivenKey& key : keys_) {
    if (key.rejection.empty() && !recorded_.contains(key.key)) finish_detail(key);
  }
}

void DeepSpeedBuilder::finish_fixed(const GivenKey& key) {
  const Json standard = Json::parse(key.spec->standard);
  if (key.is_auto || key.value->is_null()) {
    record(key.path, standard, EffectStatus::defaulted, "");
    return;
  }
  if (same_value(*key.value, standard)) {
    record(key.path, standard, EffectStatus::honoured, "");
    return;
  }
  if (key.spec->consequence == Consequence::refuse) {
    refuse(key.path, std::string(key.spec->why));
    return;
  }
  record(key.path, standard, EffectStatus::not_implemented, std::string(key.spec->why));
  if (key.spec->consequence == Consequence::warn) {
    out_.warnings.push_back(
        "strategy." + key.key + ": " + key.value->dump() +
        " is not implemented yet and has no effect: " + std::string(key.spec->why));
  }
}

void DeepSpeedBuilder::finish_detail(const GivenKey& key) {
  for (std::string section = key.path; section.find('.') != std::string::npos;) {
    section = section.substr(0, section.rfind('.'));
    for (const char* name : {".enabled", ".device", ".shared_parameters.enabled", ".mode"}) {
      const GivenKey* feature = given(section + name);
      if (feature == nullptr || feature == &key) continue;
      const auto row = recorded_.find(feature->key);
      if (row != recorded_.end() && row->second.status == EffectStatus::not_implemented) {
        record(key.path, nullptr, EffectStatus::not_implemented, "see " + feature->key);
        return;
      }
    }
  }
  record(key.path, nullptr, EffectStatus::honoured, "no effect: its feature is off");
}

}  // namespace zl
