#include "simulator/json/object.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl {
namespace {

std::string listed(std::span<const char* const> names) {
  std::string all;
  for (const char* name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

}  // namespace

JsonObject::JsonObject(const Json& value, std::string where)
    : value_(value), where_(std::move(where)) {
  if (!value.is_object()) {
    throw Error(ErrorCode::invalid, where_ + ": " + shown(value) + " is not an object");
  }
}

void JsonObject::fail(const std::string& key, const std::string& problem) const {
  throw Error(ErrorCode::invalid, path(key) + ": " + problem);
}

const Json* JsonObject::find(const char* key) {
  asked_.emplace_back(key);
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

const Json& JsonObject::at(const char* key) {
  const Json* found = find(key);
  if (found == nullptr) fail(key, "is missing; add it");
  return *found;
}

double JsonObject::number(const char* key, std::optional<double> fallback) {
  const Json* found = find(key);
  if (found == nullptr && fallback) return *fallback;
  if (found == nullptr) fail(key, "is missing; add it");
  if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0) {
    fail(key, shown(*found) + " is not a number of at least 0");
  }
  return found->get<double>();
}

double JsonObject::positive(const char* key) {
  const double value = number(key);
  if (value == 0) fail(key, "0 is not more than 0");
  return value;
}

double JsonObject::fraction(const char* key, std::optional<double> fallback) {
  const double value = number(key, fallback);
  if (value > 1) fail(key, shown(at(key)) + " is not between 0 and 1");
  return value;
}

int JsonObject::count(const char* key, std::optional<int> fallback) {
  const double value = number(key, fallback ? std::optional<double>(*fallback) : std::nullopt);
  if (value != std::floor(value) || value > 1e9) fail(key, shown(at(key)) + " is not a count");
  return static_cast<int>(value);
}

std::int64_t JsonObject::bytes(const char* key, std::optional<std::int64_t> fallback) {
  if (find(key) == nullptr && fallback) return *fallback;
  const Json& value = at(key);
  if (!value.is_string()) {
    const double bytes = number(key);
    if (!(bytes < 0x1p62)) fail(key, shown(value) + " is not a byte count below 4 EiB");
    return static_cast<std::int64_t>(bytes);
  }
  try {
    return parse_bytes(value.get<std::string>());
  } catch (const Error& error) {
    fail(key, error.what());
  }
}

bool JsonObject::boolean(const char* key, bool fallback) {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) fail(key, shown(*found) + " is not true or false");
  return found->get<bool>();
}

std::string JsonObject::text(const char* key) {
  const Json& value = at(key);
  if (!value.is_string()) fail(key, shown(value) + " is not a text");
  return value.get<std::string>();
}

std::size_t JsonObject::choice_of(const Json& value, const char* key,
                                  std::span<const char* const> names) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (value == names[i]) return i;
  }
  fail(key, shown(value) + " is not one of " + listed(names));
}

std::size_t JsonObject::choice(const char* key, std::span<const char* const> names) {
  return choice_of(at(key), key, names);
}

std::vector<std::size_t> JsonObject::choices_of(const Json& list, const char* key,
                                                std::span<const char* const> names) const {
  if (!list.is_array()) fail(key, shown(list) + " is not a list of " + listed(names));
  std::vector<std::size_t> chosen;
  for (const Json& value : list) chosen.push_back(choice_of(value, key, names));
  return chosen;
}

std::vector<std::size_t> JsonObject::choices(const char* key, std::span<const char* const> names) {
  return choices_of(at(key), key, names);
}

std::vector<std::vector<std::size_t>> JsonObject::choice_lists(const char* key,
                                                               std::span<const char* const> names) {
  const Json& lists = at(key);
  if (!lists.is_array()) fail(key, shown(lists) + " is not a list of lists of " + listed(names));
  std::vector<std::vector<std::size_t>> chosen;
  for (const Json& list : lists) chosen.push_back(choices_of(list, key, names));
  return chosen;
}

void JsonObject::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (key.starts_with("x-")) continue;
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    fail(shortened(key), "unknown key; the nearest known key is \"" + nearest(key, asked_) + "\"");
  }
}

}  // namespace zl
