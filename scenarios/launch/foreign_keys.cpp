#include "scenarios/launch/foreign_keys.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

using Fate = ForeignGroup::Fate;

// Arguments of a command line are texts whatever they mean.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  return real_in(value.get_ref<const std::string&>());
}

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

template <class Visit>
void each_word(std::string_view list, char separator, const Visit& visit) {
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    if (end > begin) visit(list.substr(begin, end - begin));
    begin = end + 1;
  }
}

const ForeignGroup* group_of(std::span<const ForeignGroup> groups, std::string_view key) {
  for (const ForeignGroup& group : groups) {
    bool found = false;
    each_word(group.keys, ' ', [&](std::string_view each) {
      found = found || each == key ||
              (each.ends_with('*') && key.starts_with(each.substr(0, each.size() - 1)));
    });
    if (found) return &group;
  }
  return nullptr;
}

std::string nearest_key(std::span<const ForeignGroup> groups, const std::string& key) {
  std::vector<std::string> known;
  for (const ForeignGroup& group : groups) {
    each_word(group.keys, ' ', [&](std::string_view each) {
      if (!each.ends_with('*')) known.emplace_back(each);
    });
  }
  const std::string near = nearest(key, known);
  return edit_distance(near, key) <= 3 ? near : "";
}

const std::string* found_in(const std::vector<std::pair<std::string, std::string>>& list,
                            const std::string& key) {
  const auto found = std::ranges::find(list, key, &std::pair<std::string, std::string>::first);
  return found == list.end() ? nullptr : &found->second;
}

// "strategy.KEY: ..." of the DeepSpeed import by the name that the file has for KEY.
std::string renamed(const std::string& text, std::span<const ForeignName> names) {
  constexpr std::string_view kStart = "strategy.";
  for (const auto& [strategy, own] : names) {
    const std::string begin = std::string(kStart) + std::string(strategy) + ":";
    if (text.starts_with(begin)) return std::string(own) + text.substr(begin.size() - 1);
  }
  return text;
}

}  // namespace

bool has_word(std::string_view list, char separator, std::string_view word) {
  bool found = false;
  each_word(list, separator, [&](std::string_view each) { found = found || each == word; });
  return found;
}

std::string name_of_source(std::string_view source) {
  const std::string_view file = source.substr(source.rfind('/') + 1);
  std::string name;
  for (const char c : file.substr(0, file.rfind('.'))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        (!name.empty() && (c == '-' || c == '_')))
      name += c;
  }
  return name.empty() ? "imported" : name.substr(0, 100);
}

ForeignKeys::ForeignKeys(std::vector<ForeignKey> keys, std::span<const ForeignGroup> groups,
                         std::string source, std::string software)
    : keys_(std::move(keys)),
      groups_(groups),
      source_(std::move(source)),
      software_(std::move(software)) {}

const ForeignKey* ForeignKeys::given(std::string_view key) const {
  const auto found = std::find_if(keys_.rbegin(), keys_.rend(),
                                  [&](const ForeignKey& each) { return each.key == key; });
  return found == keys_.rend() ? nullptr : &*found;
}

std::optional<std::int64_t> ForeignKeys::integer(std::string_view key, std::int64_t least,
                                                 std::int64_t most) {
  read(key);
  const ForeignKey* found = given(key);
  if (found == nullptr || found->value.is_null()) return std::nullopt;
  const auto number = number_of(found->value);
  const bool is_within = number && *number >= static_cast<double>(least) &&
                         *number <= static_cast<double>(most) && *number == std::floor(*number);
  if (!is_within) {
    fail(key, shown(found->value) + " is not a whole number from " + std::to_string(least) +
                  " to " + std::to_string(most));
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<double> ForeignKeys::number(std::string_view key) {
  read(key);
  const ForeignKey* found = given(key);
  if (found == nullptr || found->value.is_null()) return std::nullopt;
  const auto number = number_of(found->value);
  if (!number || !std::isfinite(*number)) fail(key, shown(found->value) + " is not a number");
  return number;
}

std::optional<std::string> ForeignKeys::text(std::string_view key) {
  read(key);
  const ForeignKey* found = given(key);
  if (found == nullptr || found->value.is_null()) return std::nullopt;
  if (!found->value.is_string()) fail(key, shown(found->value) + " is not a text");
  return found->value.get<std::string>();
}

std::optional<std::string> ForeignKeys::one_of(std::string_view key, std::string_view choices) {
  auto value = text(key);
  if (!value || has_word(choices, '|', *value)) return value;
  std::string list(choices);
  for (std::size_t at = 0; (at = list.find('|', at)) != std::string::npos; at += 2) {
    list.replace(at, 1, ", ");
  }
  fail(key, "\"" + shortened(*value) + "\" is not one of " + list);
}

bool ForeignKeys::flag(std::string_view key) {
  read(key);
  const ForeignKey* found = given(key);
  if (found == nullptr) return false;
  if (!found->value.is_boolean()) fail(key, shown(found->value) + ": it takes no value but true");
  return found->value.get<bool>();
}

void ForeignKeys::note(std::string_view key, const std::string& why) {
  notes_.emplace_back(key, why);
}

void ForeignKeys::refuse(std::string_view key, const std::string& why) {
  if (found_in(refusals_, std::string(key)) != nullptr) return;
  refusals_.emplace_back(key, why);
  const ForeignKey* found = given(key);
  out_.refusals.push_back(std::string(key) + (found ? ": " + shown(found->value) : "") +
                          " is recognised, not implemented yet: " + why);
}

void ForeignKeys::fail(std::string_view key, const std::string& why) const {
  const ForeignKey* found = given(key);
  const std::string line = found != nullptr ? ":" + std::to_string(found->line) : "";
  throw Error(ErrorCode::invalid, source_ + line + ": " + std::string(key) + ": " + why);
}

Effect ForeignKeys::row_of(const ForeignKey& key) {
  Effect row{.key = key.key, .given = to_text(key.value), .effective = to_text(key.value)};
  if (const std::string* note = found_in(notes_, key.key)) row.why = *note;
  if (const std::string* why = found_in(refusals_, key.key)) {
    row.status = EffectStatus::not_implemented;
    row.why = "recognised, not implemented yet: " + *why;
    return row;
  }
  const ForeignGroup* group = group_of(groups_, key.key);
  if (group == nullptr) {
    row.status = EffectStatus::not_implemented;
    const std::string near = nearest_key(groups_, key.key);
    row.why = "unknown to zerolab" + (near.empty() ? "" : "; the nearest that it knows is " + near);
    out_.warnings.push_back(source_ + ":" + std::to_string(key.line) + ": " + key.key + ": " +
                            row.why);
  } else if (group->fate == Fate::not_implemented) {
    if (has_word(group->off, ' ', plain(key.value))) return row;
    row.status = EffectStatus::not_implemented;
    row.why = group->why;
    refuse(key.key, row.why);
  } else if (group->fate != Fate::applied) {
    row.why = "no effect: " + std::string(group->why);
  } else if (std::ranges::find(read_, key.key) == read_.end()) {
    row.why = "no effect: its feature is off";
  }
  return row;
}

void ForeignKeys::make_rows() {
  for (const ForeignKey& key : keys_) {
    Effect row = row_of(key);
    if (given(key.key) != &key) row.why = "no effect: it stands there again below";
    out_.effects.push_back(std::move(row));
  }
}

ImportedStrategy ForeignKeys::finish(const Strategy& strategy, const Json& patch,
                                     const ImportContext& context,
                                     std::span<const ForeignName> names) {
  make_rows();
  Json canonical = strategy_to_json(strategy);
  if (patch.is_object()) canonical.merge_patch(patch);
  ImportedStrategy checked = inspect_deepspeed(to_text(canonical), source_, context);
  if (!checked.rejections.empty()) {
    throw Error(ErrorCode::invalid, source_ + ": " + renamed(checked.rejections.front(), names));
  }
  out_.strategy = std::move(checked.strategy);
  out_.ranks = checked.ranks;
  for (const std::string& each : checked.warnings) out_.warnings.push_back(renamed(each, names));
  for (const std::string& each : checked.refusals) out_.refusals.push_back(renamed(each, names));
  return std::move(out_);
}

}  // namespace zl
