#include "scenarios/files/rope_scaling.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl {
namespace {

struct RopeName {
  std::string_view name;
  RopeKind kind;
};
// "su" is what Phi-3 called longrope first.
constexpr std::array kRopeKinds = {
    RopeName{"default", RopeKind::none},    RopeName{"linear", RopeKind::linear},
    RopeName{"dynamic", RopeKind::dynamic}, RopeName{"llama3", RopeKind::llama3},
    RopeName{"yarn", RopeKind::yarn},       RopeName{"longrope", RopeKind::longrope},
    RopeName{"su", RopeKind::longrope}};

constexpr unsigned bit_of(RopeKind kind) { return 1U << static_cast<unsigned>(kind); }

// As transformers name them.
struct RopeField {
  const char* key;
  double RopeScaling::*member;
  unsigned kinds;
  bool required;
  double RopeDefaults::*fallback = nullptr;
};
constexpr unsigned kUnlessNone = ~bit_of(RopeKind::none),
                   kWithOriginal = ~bit_of(RopeKind::none) & ~bit_of(RopeKind::linear);
constexpr std::array kRopeFields = {
    RopeField{"factor", &RopeScaling::factor, kUnlessNone, true, &RopeDefaults::factor},
    RopeField{"low_freq_factor", &RopeScaling::low_freq, bit_of(RopeKind::llama3), true},
    RopeField{"high_freq_factor", &RopeScaling::high_freq, bit_of(RopeKind::llama3), true},
    RopeField{"original_max_position_embeddings", &RopeScaling::original, kWithOriginal, true,
              &RopeDefaults::original},
    RopeField{"beta_fast", &RopeScaling::beta_fast, bit_of(RopeKind::yarn), false},
    RopeField{"beta_slow", &RopeScaling::beta_slow, bit_of(RopeKind::yarn), false},
    RopeField{"mscale", &RopeScaling::mscale, bit_of(RopeKind::yarn), false},
    RopeField{"mscale_all_dim", &RopeScaling::mscale_all_dim, bit_of(RopeKind::yarn), false},
    RopeField{"attention_factor", &RopeScaling::attention_factor,
              bit_of(RopeKind::yarn) | bit_of(RopeKind::longrope), false}};

bool says(const Json& object, const char* key) {
  return object.contains(key) && !object[key].is_null();
}

RopeKind kind_of(const Json& object, const std::string& where) {
  const char* key = says(object, "rope_type") ? "rope_type" : "type";
  if (!says(object, key)) return RopeKind::llama3;
  const std::string path = child_path(where, key);
  const std::string text = text_at(object[key], path);
  std::vector<std::string> names;
  for (const RopeName& each : kRopeKinds) {
    if (each.name == text) return each.kind;
    names.emplace_back(each.name);
  }
  throw Error(ErrorCode::invalid, path + ": \"" + shortened(text) + "\" is not one of " +
                                      join(names, ", ") + "; the nearest is \"" +
                                      nearest(text, names) + "\"");
}

[[noreturn]] void refuse_missing(const std::string& path, const char* what) {
  throw Error(ErrorCode::invalid, path + ": is missing; give the " + what);
}

void read_factors(const Json& object, const std::string& where, const char* key,
                  std::vector<double>& factors) {
  const std::string path = child_path(where, key);
  if (!says(object, key)) refuse_missing(path, "numbers");
  if (!object[key].is_array()) {
    throw Error(ErrorCode::invalid, path + ": " + shown(object[key]) + " is not a list of numbers");
  }
  for (const Json& factor : object[key]) factors.push_back(number_at(factor, path));
}

}  // namespace

RopeScaling rope_scaling_from_json(const Json& object, const std::string& where,
                                   const RopeDefaults& defaults) {
  std::vector<std::string> known = {
      "rope_type", "type",         "rope_theta", "partial_rotary_factor",
      "truncate",  "short_factor", "long_factor"};
  for (const RopeField& field : kRopeFields) known.emplace_back(field.key);
  check_keys(object, where, known);
  RopeScaling scaling;
  scaling.kind = kind_of(object, where);
  for (const RopeField& field : kRopeFields) {
    if ((field.kinds & bit_of(scaling.kind)) == 0) continue;
    const std::string path = child_path(where, field.key);
    const double fallback = field.fallback == nullptr ? 0 : defaults.*field.fallback;
    if (says(object, field.key)) {
      scaling.*field.member = number_at(object[field.key], path);
    } else if (fallback > 0) {
      scaling.*field.member = fallback;
    } else if (field.required) {
      refuse_missing(path, "number");
    }
  }
  if (scaling.kind == RopeKind::yarn && says(object, "truncate")) {
    scaling.truncate = boolean_at(object["truncate"], child_path(where, "truncate"));
  }
  if (scaling.kind == RopeKind::longrope) {
    read_factors(object, where, "short_factor", scaling.short_factors);
    read_factors(object, where, "long_factor", scaling.long_factors);
  }
  return scaling;
}

Json rope_scaling_to_json(const RopeScaling& scaling) {
  const RopeScaling otherwise;
  Json object = Json::object();
  for (const RopeName& each : kRopeKinds) {
    if (each.kind != scaling.kind || scaling.kind == RopeKind::llama3 ||
        object.contains("rope_type"))
      continue;
    object["rope_type"] = each.name;
  }
  for (const RopeField& field : kRopeFields) {
    const double value = scaling.*field.member;
    const bool said = field.required || value != otherwise.*field.member;
    if (said && (field.kinds & bit_of(scaling.kind)) != 0) object[field.key] = value;
  }
  if (!scaling.truncate) object["truncate"] = false;
  if (scaling.kind != RopeKind::longrope) return object;
  object["short_factor"] = scaling.short_factors;
  object["long_factor"] = scaling.long_factors;
  return object;
}

}  // namespace zl
