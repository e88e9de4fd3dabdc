#include "gui/models/plan_data.h"

#include <algorithm>

namespace zl::gui {

std::vector<const Plan*> shown_plans(const Plans& plans) {
  std::vector<const Plan*> all;
  for (const Plan& plan : plans.best) all.push_back(&plan);
  for (const Plan& plan : plans.frontier) {
    const bool is_new = std::ranges::none_of(plans.best, [&plan](const Plan& each) {
      return each.strategy.strategy == plan.strategy.strategy;
    });
    if (is_new) all.push_back(&plan);
  }
  return all;
}

ScatterData plan_points(const Plans& plans) {
  ScatterData data;
  data.x_name = QObject::tr("memory that a plan takes of a device");
  data.y_name = QObject::tr("tokens/s");
  data.x_unit = Unit::bytes;
  for (const Plan* plan : shown_plans(plans)) {
    const RunResult& run = plan->result;
    if (run.device_capacity > 0) data.x_limit = static_cast<double>(run.device_capacity);
    ScatterPoint point{QString::fromStdString(plan->strategy.strategy.name),
                       static_cast<double>(bytes_that_must_fit(run)), run.tokens_per_second};
    if (run.step_time_low > 0) {
      const double tokens = run.tokens_per_second * run.step_time.median;
      point.low = tokens / run.step_time_high;
      point.high = tokens / run.step_time_low;
    }
    data.points.push_back(std::move(point));
  }
  if (data.x_limit) data.limit_text = QObject::tr("capacity of a device");
  return data;
}

}  // namespace zl::gui
