#include "scenarios/deepspeed/reading.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "scenarios/deepspeed/key_rows.h"

namespace zl {
namespace {

std::string lower(std::string_view text) {
  std::string copy(text);
  std::transform(copy.begin(), copy.end(), copy.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return copy;
}

std::string number_text(double value) { return shown(Json(value)); }

std::string expected_types(unsigned types) {
  std::vector<std::string> names;
  if (types & json_type::boolean) names.emplace_back("true or false");
  if (types & json_type::integer) names.emplace_back("a whole number");
  if (types & json_type::number) names.emplace_back("a number");
  if (types & json_type::text) names.emplace_back("a text");
  if (types & json_type::list) names.emplace_back("a list");
  if (types & json_type::null) names.emplace_back("null");
  return join(names, " or ");
}

bool has_type(const Json& value, unsigned types) {
  if (types & json_type::any) return true;
  if (value.is_boolean()) return types & json_type::boolean;
  if (value.is_string()) return types & json_type::text;
  if (value.is_array()) return types & json_type::list;
  if (value.is_null()) return types & json_type::null;
  if (!value.is_number()) return false;
  return (types & json_type::number) || ((types & json_type::integer) && whole_number(value));
}

std::string range_error(const Json& value, const KeySpec& spec) {
  if (!value.is_number()) return {};
  const double number = value.get<double>();
  const bool low = spec.open_minimum ? !(number > spec.minimum) : !(number >= spec.minimum);
  if (low) {
    return shown(value) + " is not " + (spec.open_minimum ? "above " : "at least ") +
           number_text(spec.minimum);
  }
  if (number > spec.maximum) return shown(value) + " is above " + number_text(spec.maximum);
  return {};
}

std::string choice_error(const Json& value, const KeySpec& spec) {
  if (!value.is_string() || spec.choices.empty()) return {};
  const std::string text = lower(value.get<std::string>());
  std::vector<std::string> choices;
  for (std::string_view left = spec.choices; !left.empty();) {
    const std::size_t bar = std::min(left.find('|'), left.size());
    choices.emplace_back(left.substr(0, bar));
    left.remove_prefix(std::min(bar + 1, left.size()));
  }
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  return shown(value) + " is not one of " + join(choices, ", ");
}

bool means_auto(const Json& value, const KeySpec& spec) {
  const bool free_text =
      spec.choices.empty() && !(spec.types & ~(json_type::text | json_type::null));
  return value.is_string() && value.get_ref<const std::string&>() == "auto" && !free_text &&
         !(spec.types & json_type::any);
}

std::string value_error(const Json& value, const KeySpec& spec) {
  if (spec.handling == Handling::rejected) return std::string(spec.why);
  if (!has_type(value, spec.types)) {
    return shown(value) + " is not " + expected_types(spec.types);
  }
  const std::string range = range_error(value, spec);
  return range.empty() ? choice_error(value, spec) : range;
}

// DeepSpeed takes what it knows from the top of a file and passes over the rest. What is like a
// name that it knows is a typing error.
constexpr KeySpec kForeign =
    rows::ignored("", "DeepSpeed reads no key of this name; comments have one that begins with _");

bool is_foreign(const std::string& name) {
  constexpr std::size_t kLongest = 64;
  if (name.size() > kLongest) return false;
  if (name.starts_with('_')) return true;
  const std::string like = nearest(name, keys_under(""));
  return edit_distance(lower(name), lower(like)) > 1 + name.size() / 4;
}

class Reader {
 public:
  // A file without any key of DeepSpeed's, or with a crowd of others, is none of its files.
  std::vector<GivenKey> take() {
    constexpr std::size_t kMostForeign = 16;
    const bool is_ours =
        foreign_.size() <= kMostForeign &&
        std::ranges::any_of(keys_, [](const GivenKey& key) { return key.spec != nullptr; });
    for (const auto& [name, value] : foreign_) {
      if (is_ours) {
        keys_.push_back({name, name, &kForeign, value});
      } else {
        reject_unknown(name, "", name);
      }
    }
    return std::move(keys_);
  }

  void read_object(const Json& object, const std::string& where) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = child_path(where, name);
      if (name.starts_with("x-") && key != "x-zerolab") continue;
      const KeySpec* spec = find_key(key);
      if (spec != nullptr && !(value.is_object() && is_section(key))) {
        add_leaf(key, *spec, value);
      } else if (spec == nullptr && !is_section(key)) {
        if (where.empty() && is_foreign(name)) {
          foreign_.emplace_back(name, &value);
        } else {
          reject_unknown(key, where, name);
        }
      } else {
        read_section(key, value);
      }
    }
  }

 private:
  static std::string nearest_key(const std::string& where, const std::string& name) {
    const std::vector<std::string> known = keys_under(where);
    return known.empty() ? nearest(where, keys_under("")) : child_path(where, nearest(name, known));
  }

  void read_section(const std::string& key, const Json& value) {
    if (value.is_object()) {
      read_object(value, key);
    } else if (key == "zero_optimization" && value.is_boolean()) {
      add_leaf(key, *find_key("zero_optimization.stage"), value);
    } else if (!value.is_null()) {
      reject(key, shown(value) + " is not an object");
    }
  }

  void add_leaf(const std::string& key, const KeySpec& spec, const Json& value) {
    GivenKey given{key, canonical_path(key), &spec, &value};
    if (key == "zero_optimization") {
      given.path = std::string(spec.path);
    } else if (means_auto(value, spec)) {
      given.is_auto = true;
    } else {
      given.rejection = value_error(value, spec);
    }
    const auto same = [&given](const GivenKey& other) { return other.path == given.path; };
    if (const auto twin = std::find_if(keys_.begin(), keys_.end(), same); twin != keys_.end()) {
      given.rejection = "the same setting is given as \"" + twin->key + "\"; remove one";
    }
    keys_.push_back(std::move(given));
  }

  void reject_unknown(const std::string& key, const std::string& where, const std::string& name) {
    reject(key, "unknown key; the nearest known key is \"" + nearest_key(where, name) + "\"");
  }

  void reject(const std::string& key, const std::string& why) {
    GivenKey given;
    given.key = given.path = key;
    given.rejection = why;
    keys_.push_back(std::move(given));
  }

  std::vector<GivenKey> keys_;
  std::vector<std::pair<std::string, const Json*>> foreign_;
};

}  // namespace

std::vector<GivenKey> read_deepspeed_keys(const Json& document) {
  Reader reader;
  reader.read_object(document, "");
  return reader.take();
}

}  // namespace zl
