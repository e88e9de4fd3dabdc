#include "scenarios/planner/plan_limits.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

using Relation = PlanLimit::Relation;

constexpr std::array<const char*, 8> kNumbers{
    "tensor", "pipeline", "virtual_stages", "replicate", "zero", "micro_batch", "data", "shard"};
constexpr std::array<const char*, 4> kWords{"schedule", "recompute", "offload",
                                            "sequence_parallel"};

bool is_number_key(const std::string& key) {
  return std::ranges::find(kNumbers, key) != kNumbers.end();
}

std::string listed_names(const auto& names) {
  std::string text;
  for (const char* name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

[[noreturn]] void refuse_limit(const std::string& text, const std::string& what) {
  throw Error(ErrorCode::usage, "\"" + text + "\": " + what);
}

PlanLimit parse_one(const std::string& text) {
  const std::size_t at = text.find_first_of("<>=");
  if (at == std::string::npos || at == 0) {
    refuse_limit(text, "write KEY=VALUE, KEY<=VALUE or KEY>=VALUE, such as tensor<=8");
  }
  PlanLimit limit{.key = text.substr(0, at)};
  const bool two = text.substr(at, 2) == "<=" || text.substr(at, 2) == ">=";
  if (!two && text[at] != '=') refuse_limit(text, "write <= or >=");
  if (two) limit.relation = text[at] == '<' ? Relation::at_most : Relation::at_least;
  limit.value = text.substr(at + (two ? 2 : 1));
  if (is_number_key(limit.key)) {
    const auto number = integer_in(limit.value);
    if (!number || *number < 0) refuse_limit(text, "\"" + limit.value + "\" is no whole number");
    return limit;
  }
  if (std::ranges::find(kWords, limit.key) == kWords.end()) {
    refuse_limit(text,
                 "unknown key; there are " + listed_names(kNumbers) + ", " + listed_names(kWords));
  }
  if (limit.relation != Relation::equal) refuse_limit(text, "use = with " + limit.key);
  if (limit.key == "schedule" && !pipeline_kind(limit.value)) {
    refuse_limit(text, "no schedule; see x-zerolab.parallel.schedule");
  }
  return limit;
}

bool holds(const PlanLimit& limit, std::int64_t value) {
  const std::int64_t bound = *integer_in(limit.value);
  if (limit.relation == Relation::at_most) return value <= bound;
  return limit.relation == Relation::at_least ? value >= bound : value == bound;
}

std::string offload_of(const Strategy& strategy) {
  if (!strategy.offload.any()) return "none";
  return strategy.offload.parameters == Tier::device ? "optimizer" : "all";
}

[[noreturn]] void refuse_all(const PlanLimit& limit, const std::vector<std::string>& tried) {
  throw Error(ErrorCode::invalid, "--constrain " + limits_text({limit}) +
                                      ": leaves nothing; there is " + join(tried, ", "));
}

// Keeps what the limits of this key accept, by the text of each value.
template <class T, class TextOf>
void keep(const PlanLimits& limits, const std::string& key, std::vector<T>& values,
          const TextOf& value_text) {
  for (const PlanLimit& limit : limits) {
    if (limit.key != key) continue;
    std::vector<T> kept;
    std::vector<std::string> tried;
    for (const auto& value : values) {
      const std::string text = value_text(value);
      const auto number = is_number_key(key) ? integer_in(text) : std::nullopt;
      if (number ? holds(limit, *number) : limit.value == text) kept.push_back(value);
      if (std::ranges::find(tried, text) == tried.end()) tried.push_back(text);
    }
    if (kept.empty()) refuse_all(limit, tried);
    values = std::move(kept);
  }
}

}  // namespace

PlanLimits parse_limits(std::string_view text) {
  PlanLimits limits;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    limits.push_back(parse_one(std::string(text.substr(begin, end - begin))));
    begin = end + 1;
  }
  return limits;
}

std::string limits_text(const PlanLimits& limits) {
  constexpr const char* kRelations[] = {"=", "<=", ">="};
  std::string text;
  for (const PlanLimit& each : limits) {
    text += (text.empty() ? "" : ",") + each.key +
            kRelations[static_cast<std::size_t>(each.relation)] + each.value;
  }
  return text;
}

void apply_limits(const PlanLimits& limits, sim::PlanSpace& space) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  keep(limits, "tensor", space.tensor, number);
  keep(limits, "pipeline", space.pipeline, number);
  keep(limits, "virtual_stages", space.chunks, number);
  keep(limits, "replicate", space.replicas, number);
  keep(limits, "micro_batch", space.micro_batch, number);
  keep(limits, "zero", space.states,
       [](const Strategy& state) { return std::to_string(state.zero.stage); });
  keep(limits, "offload", space.states, offload_of);
  keep(limits, "schedule", space.schedules,
       [](PipelineKind kind) { return std::string(name_of(kind)); });
  keep(limits, "recompute", space.recompute, recompute_text);
  keep(limits, "sequence_parallel", space.sequence_parallel,
       [](bool value) { return std::string(value ? "true" : "false"); });
}

bool is_within(const PlanLimits& limits, const sim::PlanSpace& space, const sim::PlanPoint& point,
               const sim::PlanSpace::Division& division) {
  return std::ranges::all_of(limits, [&](const PlanLimit& limit) {
    if (limit.key == "data") return holds(limit, division.data);
    if (limit.key != "shard") return true;
    return holds(limit, division.data / space.replicas[point.replicas]);
  });
}

}  // namespace zl
