#include "scenarios/deepspeed/effects.h"

#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl {

Effects::Effects(const std::vector<GivenKey>& keys) : keys_(keys) {
  for (const GivenKey& key : keys_) {
    if (key.rejection.empty()) {
      by_path_.emplace(key.path, &key);
      continue;
    }
    rows_.emplace(key.key, Effect{.key = key.key,
                                  .given = key.value ? to_text(*key.value) : "",
                                  .effective = "",
                                  .status = EffectStatus::rejected,
                                  .why = key.rejection});
    rejections_.push_back("strategy." + shortened(key.key) + ": " + key.rejection);
  }
}

const GivenKey* Effects::given(const std::string& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

const Effect* Effects::row_of(const GivenKey& key) const {
  const auto found = rows_.find(key.key);
  return found == rows_.end() ? nullptr : &found->second;
}

void Effects::record(const std::string& path, const Json& effective, EffectStatus status,
                     std::string why) {
  const GivenKey* key = given(path);
  Effect effect{.key = key ? key->key : path,
                .given = key ? to_text(*key->value) : "",
                .effective = to_text(effective),
                .status = status,
                .why = std::move(why)};
  const bool is_new = rows_.insert_or_assign(effect.key, effect).second;
  if (is_new && key == nullptr) default_order_.push_back(effect.key);
}

void Effects::reject(const std::string& path, const std::string& why) {
  const GivenKey* key = given(path);
  const std::string name = key ? key->key : path;
  record(path, nullptr, EffectStatus::rejected, why);
  rows_[name].effective.clear();
  rejections_.push_back("strategy." + name + ": " + why);
}

void Effects::refuse(const std::string& path, const std::string& why) {
  const GivenKey* key = given(path);
  record(path, nullptr, EffectStatus::not_implemented, "recognised, not implemented yet: " + why);
  refusals_.push_back("strategy." + (key ? key->key + ": " + shown(*key->value) : path) +
                      " is recognised, not implemented yet: " + why);
}

void Effects::warn(const std::string& text) { warnings_.push_back("strategy." + text); }

void Effects::warn_ignored(const std::string& key, const std::string& why) {
  ignored_.push_back(key);
  ignored_why_ = why;
}

void Effects::mark_unused(std::string_view prefix, const std::string& why) {
  for (const GivenKey& key : keys_) {
    if (key.rejection.empty() && key.path.starts_with(prefix) && row_of(key) == nullptr) {
      record(key.path, nullptr, EffectStatus::honoured, why);
    }
  }
}

void Effects::move_to(ImportedStrategy& out) {
  for (const GivenKey& key : keys_) {
    if (const Effect* row = row_of(key)) out.effects.push_back(*row);
  }
  for (const std::string& key : default_order_) out.effects.push_back(rows_.at(key));
  if (!ignored_.empty()) {
    const std::string why =
        ignored_.size() == 1 ? ignored_why_ : "`zerolab show strategy` says why";
    warn(join(ignored_, ", ") + ": no effect here: " + why);
  }
  out.warnings = std::move(warnings_);
  out.refusals = std::move(refusals_);
  out.rejections = std::move(rejections_);
}

}  // namespace zl
