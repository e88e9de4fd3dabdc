#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/planner/plan_walk.h"

namespace zl {
namespace {

double step_seconds(const Plan& plan) { return plan.result.step_time.median; }

// How much of the time is gone beside the other: 0.25 of a quarter.
Cell gain(const Plan& plan, const Plan& other) {
  return Cell(step_seconds(other) / step_seconds(plan) - 1);
}

Fits fits_of(const WalkStep& step) { return step.fits ? fits(step.plan.result) : Fits::no; }

void add_row(std::int64_t number, const std::string& change, const Plan& plan,
             const std::vector<Cell>& gains, Fits fits, const TrainingBill& bill, Table& table) {
  const RunResult& run = plan.result;
  auto& row = table.rows.emplace_back();
  row = {number > 0 ? Cell(number) : Cell(), change, run.step_time.median};
  row.insert(row.end(), gains.begin(), gains.end());
  row.insert(row.end(), {bytes_that_must_fit(run), std::string(name_of(fits))});
  add_bill(run, bill, row);
  row.insert(
      row.end(),
      {run.device_capacity > 0 ? Cell(run.device_capacity - bytes_that_must_fit(run)) : Cell(),
       std::llround(run.tokens_per_second), run.mfu > 0 ? Cell(run.mfu) : Cell()});
  add_work(run, bill, row);
}

}  // namespace

Table walk_table(const std::vector<WalkStep>& steps, const Plan* best, const TrainingBill& bill) {
  Table table{{{"step"},
               {"change", Align::left, Unit::none, true},
               {"takes", Align::right, Unit::seconds},
               {"faster", Align::right, Unit::fraction},
               {"than today", Align::right, Unit::fraction},
               {"memory", Align::right, Unit::bytes},
               {"fits", Align::left}},
              {}};
  add_bill_columns(bill, table);
  table.columns.push_back({"headroom", Align::right, Unit::bytes});
  table.columns.push_back({"tokens/s"});
  table.columns.push_back({"MFU", Align::right, Unit::fraction});
  add_work_columns(bill, table);
  const Plan& today = steps.front().plan;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const WalkStep& step = steps[i];
    const std::vector<Cell> gains =
        i == 0 ? std::vector<Cell>{Cell(), Cell()}
               : std::vector<Cell>{gain(step.plan, steps[i - 1].plan), gain(step.plan, today)};
    add_row(static_cast<std::int64_t>(i), i == 0 ? "today: " + step.change : step.change, step.plan,
            gains, fits_of(step), bill, table);
  }
  if (best != nullptr) {
    add_row(0, "best of the search: " + best->strategy.strategy.name, *best,
            {gain(*best, steps.back().plan), gain(*best, today)}, fits(best->result), bill, table);
  }
  return table;
}

Json walk_json(const std::vector<WalkStep>& steps, const TrainingBill& bill) {
  Json all = Json::array();
  for (const WalkStep& step : steps) {
    Json json = plan_json(step.plan, bill);
    json["change"] = step.change;
    json["fits"] = name_of(fits_of(step));
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace zl
