#include "scenarios/files/defaults.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace zl {

std::int64_t devices_in_name(const std::string& cluster) {
  const std::size_t digits = cluster.find_first_not_of("0123456789");
  const bool counted =
      digits > 0 && digits < 8 && digits != std::string::npos && cluster[digits] == 'x';
  return counted ? std::stoll(cluster.substr(0, digits)) : 0;
}

std::int64_t devices_in_name(const Scenario& scenario) {
  return scenario.cluster_json.empty() ? devices_in_name(scenario.cluster) : 0;
}

std::int64_t default_ranks(const Scenario& scenario) {
  if (scenario.cluster == "local") return 4;
  if (!scenario.cluster_json.empty()) {
    throw Error(ErrorCode::invalid,
                "run.ranks: missing; give it, the cluster is not from the catalogue");
  }
  return std::max<std::int64_t>(1, devices_in_name(scenario));
}

std::int64_t default_sequence_length(const ModelConfig& model) {
  const bool is_long = model.max_sequence > 2 * kUsualSequenceLength;
  return is_long && model.sliding_window > 0 ? std::min(model.sliding_window, model.max_sequence)
                                             : model.positions();
}

bool is_long_by_default(const ModelConfig& model) {
  return default_sequence_length(model) > 2 * kUsualSequenceLength;
}

std::string long_default_text(const ModelConfig& model) {
  return "without --sequence-length, sequences are of " +
         std::to_string(default_sequence_length(model)) + " tokens, the longest of " + model.name +
         "; most training is on shorter ones, such as --sequence-length " +
         std::to_string(kUsualSequenceLength / 1024) + "k";
}

}  // namespace zl
