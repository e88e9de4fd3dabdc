#include "simulator/cluster/json_object.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace zl::sim {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

}  // namespace

std::string closest(const std::string& given, const std::vector<std::string>& known) {
  std::string word = given;  // every known word is lower case
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto best =
      std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
        return edit_distance(word, a) < edit_distance(word, b);
      });
  return best == known.end() ? "" : *best;
}

JsonObject::JsonObject(const Json& value, std::string where)
    : value_(value), where_(std::move(where)) {
  if (!value.is_object()) {
    throw Error(ErrorCode::invalid, where_ + ": " + value.dump() + " is not an object");
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
    fail(key, found->dump() + " is not a number of at least 0");
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
  if (value > 1) fail(key, at(key).dump() + " is not between 0 and 1");
  return value;
}

int JsonObject::count(const char* key, std::optional<int> fallback) {
  const double value = number(key, fallback ? std::optional<double>(*fallback) : std::nullopt);
  if (value != std::floor(value) || value > 1e9) fail(key, at(key).dump() + " is not a count");
  return static_cast<int>(value);
}

std::int64_t JsonObject::bytes(const char* key) {
  const Json& value = at(key);
  if (!value.is_string()) return static_cast<std::int64_t>(number(key));
  try {
    return parse_bytes(value.get<std::string>());
  } catch (const Error& error) {
    fail(key, error.what());
  }
}

bool JsonObject::boolean(const char* key, bool fallback) {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) fail(key, found->dump() + " is not true or false");
  return found->get<bool>();
}

std::string JsonObject::text(const char* key) {
  const Json& value = at(key);
  if (!value.is_string()) fail(key, value.dump() + " is not a text");
  return value.get<std::string>();
}

void JsonObject::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (key.starts_with("x-")) continue;
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    fail(key, "unknown key; the nearest known key is \"" + closest(key, asked_) + "\"");
  }
}

}  // namespace zl::sim
