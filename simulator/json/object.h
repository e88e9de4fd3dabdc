// Reads one JSON object strictly: every key must be asked for, every value must have its type.
// Ownership: refers to the JSON value, which must outlive it. Threads: used by one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/json/reading.h"

namespace zl {

class JsonObject {
 public:
  // `where`: the source and dotted path for messages, "h100.json: device".
  JsonObject(const Json& value, std::string where);

  // Throw Error{invalid} naming the key when it is missing (without fallback) or has another type.
  double number(const char* key, std::optional<double> fallback = {});  // finite, at least 0
  double positive(const char* key);
  double fraction(const char* key, std::optional<double> fallback = {});  // 0..1
  int count(const char* key, std::optional<int> fallback = {});           // whole, at least 0
  // A number or a text such as "80GiB".
  std::int64_t bytes(const char* key, std::optional<std::int64_t> fallback = {});
  bool boolean(const char* key, bool fallback);
  std::string text(const char* key);
  // Which of `names` the key's text is, each of its list of texts, or of its list of lists.
  std::size_t choice(const char* key, std::span<const char* const> names);
  std::vector<std::size_t> choices(const char* key, std::span<const char* const> names);
  std::vector<std::vector<std::size_t>> choice_lists(const char* key,
                                                     std::span<const char* const> names);
  const Json* find(const char* key);  // nullptr when absent
  const Json& at(const char* key);
  JsonObject object(const char* key) { return JsonObject(at(key), path(key)); }

  std::string path(const std::string& key) const { return where_ + "." + key; }
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;
  // Throws Error{invalid} for keys that nobody asked for, naming the nearest one that was.
  void finish() const;

 private:
  std::size_t choice_of(const Json& value, const char* key,
                        std::span<const char* const> names) const;
  std::vector<std::size_t> choices_of(const Json& list, const char* key,
                                      std::span<const char* const> names) const;

  const Json& value_;
  std::string where_;
  std::vector<std::string> asked_;
};

}  // namespace zl
