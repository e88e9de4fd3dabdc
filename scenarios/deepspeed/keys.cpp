#include "scenarios/deepspeed/keys.h"

#include <algorithm>

#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

using fields::kZero;
constexpr std::string_view kStage3 = "stage3_";

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('.')); }

std::string_view rest(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
}

// Strips `path` from the front of `row`, component by component; false when they differ.
bool strip_prefix(std::string_view& row, std::string_view path) {
  // Most rows are others already in the first letter.
  if (!row.empty() && !path.empty() && row.front() != path.front() && row.front() != '*') {
    return false;
  }
  while (!path.empty()) {
    const std::string_view pattern = first_component(row);
    if (pattern != "*" && pattern != first_component(path)) return false;
    row = rest(row);
    path = rest(path);
    if (row.empty() && !path.empty()) return false;
  }
  return true;
}

template <class Visitor>
const KeySpec* find_row(Visitor&& matches) {
  for (const auto table : {training_keys(), zero_keys(), surrounding_keys()}) {
    for (const KeySpec& row : table) {
      if (matches(row)) return &row;
    }
  }
  return nullptr;
}

}  // namespace

std::string canonical_path(std::string_view path) {
  if (first_component(path) == "bfloat16") {
    return "bf16" + std::string(path.substr(std::string_view("bfloat16").size()));
  }
  if (path.starts_with(kZero) && path.substr(kZero.size()).starts_with(kStage3)) {
    std::string plain = kZero + std::string(path.substr(kZero.size() + kStage3.size()));
    const KeySpec* row = find_row([&plain](const KeySpec& spec) { return spec.path == plain; });
    if (row != nullptr && row->stage3_alias) return plain;
  }
  return std::string(path);
}

const KeySpec* find_key(std::string_view path) {
  const std::string canonical = canonical_path(path);
  return find_row([&canonical](const KeySpec& spec) {
    std::string_view row = spec.path;
    return strip_prefix(row, canonical) && row.empty();
  });
}

bool is_known_path(std::string_view path) {
  const std::string canonical = canonical_path(path);
  return find_row([&canonical](const KeySpec& spec) {
           std::string_view row = spec.path;
           return strip_prefix(row, canonical);
         }) != nullptr;
}

bool is_section(std::string_view path) {
  const std::string canonical = canonical_path(path);
  return find_row([&canonical](const KeySpec& spec) {
           std::string_view row = spec.path;
           return strip_prefix(row, canonical) && !row.empty();
         }) != nullptr;
}

std::vector<std::string> keys_under(std::string_view section) {
  std::vector<std::string> keys;
  const auto add = [&keys](std::string key) {
    if (key != "*" && std::find(keys.begin(), keys.end(), key) == keys.end()) {
      keys.push_back(std::move(key));
    }
  };
  const std::string canonical = canonical_path(section);
  for (const auto table : {training_keys(), zero_keys(), surrounding_keys()}) {
    for (const KeySpec& spec : table) {
      std::string_view row = spec.path;
      const bool wrong_here =
          spec.handling == Handling::rejected || spec.handling == Handling::ignored;
      if (wrong_here || !strip_prefix(row, canonical) || row.empty()) {
        continue;
      }
      add(std::string(first_component(row)));
      if (spec.stage3_alias) add(std::string(kStage3) + std::string(first_component(row)));
    }
  }
  return keys;
}

}  // namespace zl
