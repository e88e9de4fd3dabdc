#include "simulator/cluster/stack.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

double share(JsonObject& object, const char* key) {
  const double value = object.fraction(key);
  if (value == 0) object.fail(key, "0 is not above 0");
  return value;
}

}  // namespace

Stack parse_stack(std::string_view json, const std::string& source) {
  const Json value = parse_json(json, source);
  JsonObject object(value, source + ": stack");
  if (object.count("schema") != 1) object.fail("schema", "is not 1, the only version so far");
  Stack stack;
  stack.name = object.text("name");
  stack.launch_seconds = object.number("launch_seconds");
  stack.step_seconds = object.number("step_seconds", 0.0);
  stack.gemm = share(object, "gemm");
  stack.memory = share(object, "memory");
  stack.links = share(object, "links");
  stack.materialized_attention = object.boolean("materialized_attention", false);
  stack.overlap_loss = object.fraction("overlap_loss");
  stack.step_error = object.positive("step_error");
  object.finish();
  return stack;
}

ClusterSpec with_stack(ClusterSpec cluster, const Stack& stack) {
  if (cluster.calibration || cluster.compute_is_host) {
    throw Error(ErrorCode::invalid,
                "run.stack: \"" + shortened(stack.name) + "\" is for GPUs of the catalogue; " +
                    cluster.name + " is priced by what " +
                    (cluster.compute_is_host ? "its own processor does" : "was measured on it") +
                    "; leave run.stack (--stack) out");
  }
  DeviceSpec& device = cluster.device;
  device.launch_seconds = stack.launch_seconds;
  device.memory_efficiency *= stack.memory;
  device.materialized_attention = stack.materialized_attention;
  for (ComputeRate& rate : device.rates) rate.efficiency *= stack.gemm;
  cluster.intra.efficiency *= stack.links;
  cluster.inter.efficiency *= stack.links;
  cluster.step_seconds = stack.step_seconds;
  cluster.overlap_loss = stack.overlap_loss;
  cluster.step_error = stack.step_error;
  return cluster;
}

}  // namespace zl::sim
