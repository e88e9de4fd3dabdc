#include "scenarios/planner/plan_limits.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
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

// Keeps what the limits of this key accept.
template <class T, class Accepts>
void keep(const PlanLimits& limits, const std::string& key, std::vector<T>& values,
          const Accepts& accepts) {
  for (const PlanLimit& limit : limits) {
    if (limit.key != key) continue;
    std::vector<T> kept;
    for (const auto& value : values) {
      if (accepts(limit, value)) kept.push_back(value);
    }
    if (kept.empty()) {
      throw Error(ErrorCode::invalid, "limit of " + key + ": nothing that the planner tries is " +
                                          limit.value + "; widen it");
    }
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

void apply_limits(const PlanLimits& limits, sim::PlanSpace& space) {
  const auto number = [](const PlanLimit& limit, std::int64_t value) {
    return holds(limit, value);
  };
  keep(limits, "tensor", space.tensor, number);
  keep(limits, "pipeline", space.pipeline, number);
  keep(limits, "virtual_stages", space.chunks, number);
  keep(limits, "replicate", space.replicas, number);
  keep(limits, "micro_batch", space.micro_batch, number);
  keep(limits, "zero", space.states, [](const PlanLimit& limit, const Strategy& state) {
    return holds(limit, state.zero.stage);
  });
  keep(limits, "offload", space.states, [](const PlanLimit& limit, const Strategy& state) {
    return offload_of(state) == limit.value;
  });
  keep(limits, "schedule", space.schedules,
       [](const PlanLimit& limit, PipelineKind kind) { return limit.value == name_of(kind); });
  keep(limits, "recompute", space.recompute,
       [](const PlanLimit& limit, const RecomputeConfig& config) {
         return recompute_text(config) == limit.value;
       });
  keep(
      limits, "sequence_parallel", space.sequence_parallel,
      [](const PlanLimit& limit, bool value) { return limit.value == (value ? "true" : "false"); });
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
