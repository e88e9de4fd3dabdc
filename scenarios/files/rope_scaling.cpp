#include "scenarios/files/rope_scaling.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace zl {
namespace {

// As Hugging Face names them.
template <class Scaling, class Visitor>
void visit_scaling(Scaling& scaling, Visitor&& visit) {
  visit("factor", scaling.factor);
  visit("low_freq_factor", scaling.low_freq);
  visit("high_freq_factor", scaling.high_freq);
  visit("original_max_position_embeddings", scaling.original);
}

}  // namespace

RopeScaling rope_scaling_from_json(const Json& object, const std::string& where) {
  check_keys(object, where,
             {"rope_type", "type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor",
              "original_max_position_embeddings"});
  RopeScaling scaling;
  visit_scaling(scaling, [&](const char* key, double& member) {
    if (!object.contains(key)) {
      throw Error(ErrorCode::invalid, child_path(where, key) + ": is missing; give the number");
    }
    member = number_at(object[key], child_path(where, key));
  });
  return scaling;
}

Json rope_scaling_to_json(const RopeScaling& scaling) {
  Json object = Json::object();
  visit_scaling(scaling,
                [&object](const char* key, const double& member) { object[key] = member; });
  return object;
}

}  // namespace zl
