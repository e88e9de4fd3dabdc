// The table of every DeepSpeed configuration key zerolab knows, and what becomes of each.
// Ownership: static data. Threads: immutable.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

// Value types a key accepts, as a mask.
namespace json_type {
inline constexpr unsigned boolean = 1, integer = 2, number = 4, text = 8, list = 16, null = 32,
                          any = 64;
}

enum class Handling : std::uint8_t {
  applied,   // becomes a field of Strategy
  fixed,     // zerolab always behaves like `standard`; another value is not implemented
  moot,      // accepted: the training is the same whatever the value
  detail,    // belongs to an optional feature; follows that feature's switch
  ignored,   // DeepSpeed ignores it here, said aloud; `why` says what to write instead
  rejected,  // known, but wrong here; `why` says what to write instead
};

// What a value other than `standard` of a fixed key does to the run.
enum class Consequence : std::uint8_t { quiet, warn, refuse };

struct KeySpec {
  std::string_view path;  // dotted; "*" stands for any one key
  unsigned types = json_type::any;
  std::string_view standard = {};  // JSON text of the default
  Handling handling = Handling::applied;
  Consequence consequence = Consequence::quiet;
  std::string_view why = {};
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool open_minimum = false;      // the minimum itself is excluded
  std::string_view choices = {};  // "a|b|c", compared without case
  bool stage3_alias = false;      // also accepted with the prefix stage3_

  constexpr KeySpec at_least(double value) const {
    KeySpec copy = *this;
    copy.minimum = value;
    return copy;
  }
  constexpr KeySpec above(double value) const {
    KeySpec copy = at_least(value);
    copy.open_minimum = true;
    return copy;
  }
  constexpr KeySpec at_most(double value) const {
    KeySpec copy = *this;
    copy.maximum = value;
    return copy;
  }
  constexpr KeySpec one_of(std::string_view values) const {
    KeySpec copy = *this;
    copy.choices = values;
    return copy;
  }
  constexpr KeySpec or_stage3() const {
    KeySpec copy = *this;
    copy.stage3_alias = true;
    return copy;
  }
};

// The tables of each part of a configuration file.
std::span<const KeySpec> training_keys();     // top level, precision, optimizer, scheduler
std::span<const KeySpec> zero_keys();         // zero_optimization
std::span<const KeySpec> surrounding_keys();  // monitoring, checkpoints, other features

// The row of a dotted path, wildcards followed; nullptr when there is none.
const KeySpec* find_key(std::string_view path);

// Is the path a row, or an object that contains rows?
bool is_known_path(std::string_view path);

// The path under which a value is looked up: aliases (stage3_..., bfloat16.) resolved.
std::string canonical_path(std::string_view path);

// Are there rows below the path, so that its value is an object of further keys?
bool is_section(std::string_view path);

// Last components of the rows and sections directly under `section` ("" is the top level).
std::vector<std::string> keys_under(std::string_view section);

}  // namespace zl
