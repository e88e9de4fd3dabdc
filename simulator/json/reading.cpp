#include "simulator/json/reading.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/json_limits.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl {
namespace {

// A text that counts how much of it the parser has read.
class CountedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedText(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountedText& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  bool operator==(const CountedText& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* count_;
};

// Watches the parser's events for a key that occurs twice in one object.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(const std::size_t& consumed) : consumed_(consumed) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      seen_.resize(level + 1);
      path_.resize(level);
      seen_[level].clear();
    } else if (event == Json::parse_event_t::array_start) {
      seen_.resize(level + 1);
      path_.resize(level);
    } else if (event == Json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      path_.resize(level);
      path_[level - 1] = key;
      if (first_.empty() && !seen_[level - 1].insert(key).second) {
        first_ = dotted();
        end_ = consumed_;
      }
    }
    return true;
  }
  const std::string& first() const { return first_; }
  std::size_t end() const { return end_; }  // of the second key's text, its closing quote included

 private:
  std::string dotted() const {
    std::string text;
    for (const std::string& key : path_) {
      if (!key.empty()) text = child_path(text, key);
    }
    return text;
  }

  const std::size_t& consumed_;
  std::vector<std::set<std::string>> seen_;
  std::vector<std::string> path_;
  std::string first_;
  std::size_t end_ = 0;
};

// Where the string begins whose closing quote is the last character before `end`: within a string
// an odd number of backslashes stands before every quote.
std::size_t string_start(std::string_view text, std::size_t end) {
  for (std::size_t quote = end - 1; quote-- > 0;) {
    if (text[quote] != '"') continue;
    std::size_t backslashes = 0;
    while (backslashes < quote && text[quote - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote;
  }
  return 0;
}

[[noreturn]] void wrong_type(const Json& value, const std::string& where, const char* expected) {
  throw Error(ErrorCode::invalid, where + ": " + shown(value) + " is not " + expected);
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  require_shallow_json(text, source);
  std::size_t consumed = 0;
  DuplicateKeys duplicates(consumed);
  const CountedText begin(text.data(), &consumed), end(text.data() + text.size(), &consumed);
  try {
    Json value = Json::parse(begin, end, std::ref(duplicates), true, true);
    if (!duplicates.first().empty()) {
      const std::size_t start = string_start(text, duplicates.end());
      throw Error(ErrorCode::invalid, std::string(source) + ":" + position_text(text, start + 1) +
                                          ": the key \"" + shortened(duplicates.first()) +
                                          "\" is given twice; remove one");
    }
    return value;
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::invalid, std::string(source) + ":" + position_text(text, error.byte) +
                                        ": malformed JSON: " + json_problem(error.what()));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::invalid,
                std::string(source) + ": malformed JSON: " + json_problem(error.what()));
  }
}

Json json_or_null(std::string_view text) {
  try {
    return parse_json(text, "");
  } catch (const Error&) {
    return nullptr;
  }
}

std::string to_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string shown(const Json& value) { return shortened(to_text(value)); }

void require_texts(const Json& value, const std::string& where) {
  if (const auto* text = value.get_ptr<const std::string*>()) {
    if (is_utf8(*text) && text->find('\0') == std::string::npos) return;
    throw Error(ErrorCode::invalid, where + ": \"" + visible(shortened(*text)) +
                                        "\" is not UTF-8 without NUL; write or name it otherwise");
  }
  if (!value.is_structured()) return;
  for (const auto& item : value.items()) {
    const std::string& key = item.key();
    require_texts(item.value(),
                  value.is_array() ? where + "[" + key + "]" : child_path(where, key));
  }
}

std::string child_path(std::string_view where, std::string_view key) {
  return where.empty() ? std::string(key) : std::string(where) + "." + std::string(key);
}

void check_keys(const Json& object, const std::string& where,
                const std::vector<std::string>& known) {
  if (!object.is_object()) wrong_type(object, where.empty() ? "scenario" : where, "an object");
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with("x-") || std::find(known.begin(), known.end(), key) != known.end())
      continue;
    throw Error(ErrorCode::invalid, child_path(where, shortened(key)) +
                                        ": unknown key; the nearest known key is \"" +
                                        child_path(where, nearest(key, known)) + "\"");
  }
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double limit = 9.2e18;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::floor(number) != number || std::abs(number) > limit) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::int64_t integer_at(const Json& value, const std::string& where) {
  const auto number = whole_number(value);
  if (!number) wrong_type(value, where, "a whole number");
  return *number;
}

double number_at(const Json& value, const std::string& where) {
  if (!value.is_number()) wrong_type(value, where, "a number");
  return value.get<double>();
}

bool boolean_at(const Json& value, const std::string& where) {
  if (!value.is_boolean()) wrong_type(value, where, "true or false");
  return value.get<bool>();
}

std::string text_at(const Json& value, const std::string& where) {
  if (!value.is_string()) wrong_type(value, where, "a text");
  return value.get<std::string>();
}

}  // namespace zl
