#include "scenarios/planner/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/why.h"

namespace zl {
namespace {

constexpr double kSecondsOfHour = 3600, kHoursOfDay = 24, kWattsOfMegawatt = 1e6;

// Of boards that draw all they may, without hosts and cooling; 0: not known.
double megawatt_hours(const RunResult& run, const TrainingBill& bill) {
  return gpu_hours(run, bill) * bill.board_watts / kWattsOfMegawatt;
}

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

Cell headroom(const RunResult& run) {
  if (run.device_capacity == 0) return {};
  return run.device_capacity - bytes_that_must_fit(run);
}

}  // namespace

double gpu_hours(const RunResult& run, const TrainingBill& bill) {
  return bill.tokens / run.tokens_per_second / kSecondsOfHour * run.ranks;
}

void add_bill_columns(const TrainingBill& bill, Table& table) {
  if (bill.tokens > 0) table.columns.push_back({"days"});
  if (bill.gpu_hour_price > 0) {
    table.columns.push_back({bill.tokens > 0 ? "cost" : "cost of 1B tokens"});
  }
}

void add_bill(const RunResult& run, const TrainingBill& bill, std::vector<Cell>& row) {
  const double price = bill.gpu_hour_price;
  if (bill.tokens > 0) {
    const double hours = gpu_hours(run, bill);
    row.emplace_back(rounded(hours / run.ranks / kHoursOfDay, 100));
    if (price > 0) row.emplace_back(std::llround(hours * price));
  } else if (price > 0) {
    row.emplace_back(rounded(gpu_hours(run, {.tokens = 1e9}) * price, 100));
  }
}

void add_work_columns(const TrainingBill& bill, Table& table) {
  if (bill.tokens > 0) {
    table.columns.push_back({"GPU-hours"});
    table.columns.push_back({"MWh of boards"});
  }
}

void add_work(const RunResult& run, const TrainingBill& bill, std::vector<Cell>& row) {
  if (bill.tokens <= 0) return;
  row.emplace_back(std::llround(gpu_hours(run, bill)));
  const double energy = megawatt_hours(run, bill);
  row.push_back(energy > 0 ? Cell(rounded(energy, 100)) : Cell());
}

Json plan_json(const Plan& plan, const TrainingBill& bill) {
  const RunResult& run = plan.result;
  Json json = {{"strategy", strategy_to_json(plan.strategy.strategy)},
               {"mesh", mesh_text(plan.strategy.strategy, run.ranks)},
               {"layers", plan.layers},
               {"recomputed_layers", recomputed_layers(plan)},
               {"fits", name_of(fits(run))},
               {"memory_bytes", bytes_that_must_fit(run)},
               {"device_bytes", run.device_capacity},
               {"headroom_bytes", run.device_capacity > 0
                                      ? Json(run.device_capacity - bytes_that_must_fit(run))
                                      : Json(nullptr)},
               {"in_use_bytes", bytes_at_peak(run)},
               {"peak_bytes", run.peak_device.total()},
               {"reserved_bytes", run.reserved_device},
               {"step_time_seconds", run.step_time.median},
               {"step_time_low_seconds", run.step_time_low},
               {"step_time_high_seconds", run.step_time_high},
               {"tokens_per_second", run.tokens_per_second},
               {"mfu", run.mfu > 0 ? Json(run.mfu) : Json(nullptr)},
               {"exposed_communication_seconds", run.time.exposed_communication},
               {"bubble_seconds", run.time.bubble},
               {"equals_best", plan.equals_best},
               {"closed_form",
                {{"bytes", plan.closed_form.memory},
                 {"seconds", static_cast<double>(plan.closed_form.time) * 1e-12},
                 {"is_exact", plan.closed_form.is_exact}}},
               {"why", plan.why}};
  if (bill.tokens > 0) {
    json["gpu_hours"] = gpu_hours(run, bill);
    if (bill.board_watts > 0) {
      json["board_watts"] = bill.board_watts;
      json["energy_megawatt_hours"] = megawatt_hours(run, bill);
    }
    if (bill.gpu_hour_price > 0) json["cost"] = gpu_hours(run, bill) * bill.gpu_hour_price;
  }
  return json;
}

namespace {

// What decides comes first: a terminal shows as many as it has room for.
Table empty_plan_table(const TrainingBill& bill) {
  Table table{{{"plan"},
               {"mesh", Align::left},
               {"ZeRO", Align::left},
               {"recompute", Align::left},
               {"step", Align::right, Unit::seconds}},
              {}};
  add_bill_columns(bill, table);
  for (Column column :
       {Column{"memory", Align::right, Unit::bytes}, Column{"fits", Align::left},
        Column{"tokens/s"}, Column{"MFU", Align::right, Unit::fraction},
        Column{"schedule", Align::left}, Column{"micro-batch"},
        Column{"headroom", Align::right, Unit::bytes}, Column{"from", Align::right, Unit::seconds},
        Column{"to", Align::right, Unit::seconds},
        Column{"exposed comm", Align::right, Unit::seconds},
        Column{"bubble", Align::right, Unit::seconds}}) {
    table.columns.push_back(std::move(column));
  }
  add_work_columns(bill, table);
  table.columns.push_back({"beside the best", Align::left});
  table.columns.push_back({"beside the next", Align::left, Unit::none, true});
  return table;
}

std::vector<Cell> plan_row(Cell place, const Plan& plan, const TrainingBill& bill) {
  const Strategy& strategy = plan.strategy.strategy;
  const RunResult& run = plan.result;
  std::vector<Cell> row{std::move(place), mesh_text(strategy, run.ranks), state_text(strategy),
                        recomputed_text(plan), run.step_time.median};
  add_bill(run, bill, row);
  row.insert(row.end(), {bytes_that_must_fit(run), std::string(name_of(fits(run))),
                         std::llround(run.tokens_per_second), run.mfu > 0 ? Cell(run.mfu) : Cell(),
                         schedule_text(strategy.pipeline), strategy.micro_batch, headroom(run),
                         run.step_time_low, run.step_time_high, run.time.exposed_communication,
                         run.time.bubble});
  add_work(run, bill, row);
  row.emplace_back(std::string(plan.equals_best ? "equal" : "behind"));
  row.emplace_back(plan.why);
  return row;
}

// None: it is not in the list.
Cell place_in(const std::vector<Plan>& list, const Plan& plan) {
  const auto found = std::ranges::find_if(
      list, [&plan](const Plan& each) { return each.strategy.strategy == plan.strategy.strategy; });
  return found == list.end() ? Cell() : Cell(static_cast<std::int64_t>(found - list.begin()) + 1);
}

}  // namespace

Table plan_table(const std::vector<Plan>& plans, const TrainingBill& bill) {
  Table table = empty_plan_table(bill);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    table.rows.push_back(plan_row(static_cast<std::int64_t>(i) + 1, plans[i], bill));
  }
  return table;
}

Table frontier_table(const Plans& plans, const TrainingBill& bill) {
  Table table = empty_plan_table(bill);
  for (const Plan& plan : plans.frontier) {
    table.rows.push_back(plan_row(place_in(plans.best, plan), plan, bill));
  }
  return table;
}

Json plans_json(const Plans& plans, const TrainingBill& bill) {
  const auto listed = [&](const std::vector<Plan>& all) {
    Json list = Json::array();
    for (const Plan& plan : all) list.push_back(plan_json(plan, bill));
    return list;
  };
  const PlanCounts& counts = plans.counts;
  return {{"schema", 1},
          {"counts",
           {{"combinations", counts.combinations},
            {"runnable", counts.runnable},
            {"too_large", counts.too_large},
            {"judged", counts.judged},
            {"fitting", counts.fitting},
            {"profiles", counts.profiles},
            {"recorded", counts.recorded}}},
          {"plans", listed(plans.best)},
          {"frontier", listed(plans.frontier)}};
}

std::string plan_line(const Plan& plan) {
  const RunResult& run = plan.result;
  std::string text = plan.strategy.strategy.name + ": " +
                     readable(run.step_time.median, Unit::seconds) + " a step, " +
                     format_bytes(bytes_that_must_fit(run));
  if (run.device_capacity > 0) text += " of " + format_bytes(run.device_capacity);
  return text;
}

std::string counts_line(const Plans& plans) {
  const PlanCounts& counts = plans.counts;
  const std::string first =
      plans.first_seconds > 0
          ? fmt::format("a first answer after {:.2f} s, all after ", plans.first_seconds)
          : "";
  return fmt::format(
      "{} combinations, {} that can run, {} too large by a bound, {} judged, {} of them fit; {} "
      "profiles, {} recorded in full; {}{:.1f} s",
      counts.combinations, counts.runnable, counts.too_large, counts.judged, counts.fitting,
      counts.profiles, counts.recorded, first, plans.seconds);
}

}  // namespace zl
