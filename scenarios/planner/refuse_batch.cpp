#include "scenarios/planner/refuse_batch.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "core/base/error.h"
#include "scenarios/planner/software_limits.h"

namespace zl {
namespace {

// Data-parallel ranks of every mesh that the limits leave.
std::set<std::int64_t> data_sizes(const PlanRequest& request, const sim::PlanSpace& space) {
  std::set<std::int64_t> sizes;
  sim::PlanPoint point;
  for (const std::int64_t tensor : space.tensor) {
    for (const std::int64_t pipeline : space.pipeline) {
      if (space.ranks % (tensor * pipeline) != 0) continue;
      const std::int64_t data = space.ranks / (tensor * pipeline);
      for (point.replicas = 0; point.replicas < space.replicas.size(); ++point.replicas) {
        if (data % space.replicas[point.replicas] != 0) continue;
        if (is_within(request.limits, space, point, {.data = data})) sizes.insert(data);
      }
    }
  }
  return sizes;
}

std::int64_t nearest_batch(std::int64_t batch, const std::set<std::int64_t>& sizes) {
  std::int64_t nearest = *sizes.begin();
  for (const std::int64_t data : sizes) {
    for (const std::int64_t each : {batch / data * data, (batch / data + 1) * data}) {
      if (each > 0 && std::llabs(each - batch) < std::llabs(nearest - batch)) nearest = each;
    }
  }
  return nearest;
}

// Of the meshes that divide the batch, what its own checks say of the first.
std::string first_conflict(const PlanRequest& request, const sim::PlanSpace& space) {
  for (std::int64_t i = 0; i < space.size(); ++i) {
    const sim::PlanPoint point = space.at(i);
    const auto division = space.division(point);
    if (!division || !is_within(request.limits, space, point, *division)) continue;
    std::string why = sim::conflict_of(request.scenario.model, space.strategy(point), space.ranks,
                                       request.scenario.run.sequence_length);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace

void refuse_batch(const PlanRequest& request, const sim::PlanSpace& space) {
  const std::int64_t batch = request.global_batch;
  const std::string ranks = std::to_string(space.ranks) + " ranks";
  const std::set<std::int64_t> sizes = data_sizes(request, space);
  if (sizes.empty()) {
    throw Error(ErrorCode::invalid,
                "--constrain: leaves no mesh of " + ranks +
                    "; tensor, pipeline and data multiply to them, shard and replicate to data");
  }
  const bool divides =
      std::ranges::any_of(sizes, [batch](std::int64_t data) { return batch % data == 0; });
  if (!divides) {
    const std::int64_t most =
        batch * std::ranges::max(space.tensor) * std::ranges::max(space.pipeline);
    throw Error(ErrorCode::invalid,
                "--global-batch: " + std::to_string(batch) +
                    " sequences cannot be divided over any mesh of " + ranks +
                    (request.limits.empty() ? "" : " that --constrain leaves") +
                    "; the nearest that can are " + std::to_string(nearest_batch(batch, sizes)) +
                    (most < space.ranks
                         ? ", and these keep no more than " + std::to_string(most) + " GPUs busy"
                         : ""));
  }
  const std::string& software = request.scenario.run.software;
  if (SoftwareLimits(software, request.scenario.model, space).any()) {
    throw Error(ErrorCode::invalid,
                "--software " + software + ": of the plans that divide " + std::to_string(batch) +
                    " sequences over " + ranks +
                    " within the limits it can be told none; leave it out, widen --constrain, or "
                    "take another --global-batch");
  }
  throw Error(ErrorCode::invalid, "of the plans that divide " + std::to_string(batch) +
                                      " sequences over " + ranks +
                                      " none can run: " + first_conflict(request, space));
}

}  // namespace zl
