// Plans as tables and JSON, and what training costs by them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "results/format.h"
#include "scenarios/planner/plan.h"
#include "simulator/json/reading.h"

namespace zl {

// How much is to be trained, what a GPU costs and draws.
struct TrainingBill {
  double tokens = 0;          // 0: not asked
  double gpu_hour_price = 0;  // likewise
  double board_watts = 0;     // of one GPU; 0: not known

  bool is_asked() const { return tokens > 0 || gpu_hour_price > 0; }
};

// Of tokens, however many GPUs there are.
double gpu_hours(const RunResult& run, const TrainingBill& bill);
// What of the bill a row of a plan has, of tables that have more: columns and cells. Days and cost:
void add_bill_columns(const TrainingBill& bill, Table& table);
void add_bill(const RunResult& run, const TrainingBill& bill, std::vector<Cell>& row);
// GPU-hours and energy:
void add_work_columns(const TrainingBill& bill, Table& table);
void add_work(const RunResult& run, const TrainingBill& bill, std::vector<Cell>& row);

// Memory and headroom are of what a plan takes of the device, with allocator, context and libraries
// where the software's own bytes are known; together they are the device's.
Table plan_table(const std::vector<Plan>& plans, const TrainingBill& bill);
// Of the frontier, numbered as in the table of the best; no number: it is not among those.
Table frontier_table(const Plans& plans, const TrainingBill& bill);
Json plans_json(const Plans& plans, const TrainingBill& bill);
Json plan_json(const Plan& plan, const TrainingBill& bill);
// "tp8-pp4-zero-1: 12.3 s a step, 61 GB of 80 GB".
std::string plan_line(const Plan& plan);
// What was tried, in a line.
std::string counts_line(const Plans& plans);

}  // namespace zl
