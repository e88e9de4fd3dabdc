#include "scenarios/launch/own_keys.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

constexpr std::string_view kComment = "# zerolab: ";

// Those that change neither what is trained nor what lies where, beyond buckets.
constexpr std::array<std::string_view, 10> kOwn{"x-zerolab.name",
                                                "zero_optimization.reduce_bucket_size",
                                                "zero_optimization.prefetch_bucket_size",
                                                "zero_optimization.param_persistence_threshold",
                                                "zero_optimization.model_persistence_threshold",
                                                "zero_optimization.max_live_parameters",
                                                "zero_optimization.max_reuse_distance",
                                                "zero_optimization.sub_group_size",
                                                "zero_optimization.offload_optimizer.pin_memory",
                                                "zero_optimization.offload_param.pin_memory"};

// Over one data-parallel rank every stage is the same.
bool is_own(const std::string& path, std::int64_t data_ranks) {
  if (data_ranks == 1 && path.starts_with("zero_optimization.")) return true;
  return std::ranges::find(kOwn, path) != kOwn.end();
}

void note_difference(const std::string& path, const Json& wanted, const Json& given,
                     std::int64_t data_ranks, Obstacles& obstacles) {
  if (is_own(path, data_ranks)) return;
  obstacles.add(path, "the file would mean " + (given.is_null() ? "none" : shown(given)) +
                          ", the plan has " + (wanted.is_null() ? "none" : shown(wanted)));
}

Json difference(const Json& from, const Json& to, const std::string& where, std::int64_t data_ranks,
                Obstacles& obstacles) {
  Json patch = Json::object();
  for (const auto& [key, value] : to.items()) {
    const Json before = from.contains(key) ? from[key] : Json();
    if (before == value) continue;
    const std::string path = child_path(where, key);
    if (value.is_object() && (before.is_object() || before.is_null())) {
      Json inner = difference(before.is_null() ? Json::object() : before, value, path, data_ranks,
                              obstacles);
      if (!inner.empty()) patch[key] = std::move(inner);
      continue;
    }
    note_difference(path, value, before, data_ranks, obstacles);
    patch[key] = value;
  }
  for (const auto& [key, value] : from.items()) {
    if (to.contains(key)) continue;
    note_difference(child_path(where, key), nullptr, value, data_ranks, obstacles);
    patch[key] = nullptr;
  }
  return patch;
}

}  // namespace

Json own_keys(const Strategy& strategy, const Strategy& imported, std::int64_t data_ranks,
              Obstacles& obstacles) {
  return difference(strategy_to_json(imported), strategy_to_json(strategy), "", data_ranks,
                    obstacles);
}

std::string in_comment(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

std::string own_comment(const Json& patch) { return std::string(kComment) + to_text(patch) + "\n"; }

Json read_own_comment(std::string_view text, std::string_view source) {
  std::int64_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view each = text.substr(begin, end - begin);
    begin = end + 1;
    if (!each.starts_with(kComment)) continue;
    Json patch = json_or_null(each.substr(kComment.size()));
    if (patch.is_object()) return patch;
    throw Error(ErrorCode::invalid, std::string(source) + ":" + std::to_string(line) +
                                        ": what follows \"# zerolab:\" is no JSON object; restore "
                                        "the line or remove it");
  }
  return nullptr;
}

}  // namespace zl
