// Plans as tables and JSON, and what training costs by them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
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

// What of the bill a row of a plan has, of tables that have more: columns and cells.
void add_bill_columns(const TrainingBill& bill, Table& table);
void add_bill(const RunResult& run, const TrainingBill& bill, std::vector<Cell>& row);

Table plan_table(const std::vector<Plan>& plans, const TrainingBill& bill);
Json plans_json(const Plans& plans, const TrainingBill& bill);
Json plan_json(const Plan& plan, const TrainingBill& bill);
// "tp8-pp4-zero-1: 12.3 s a step, 61 GB of 80 GB".
std::string plan_line(const Plan& plan);
// What was tried, in a line.
std::string counts_line(const Plans& plans);

// One answer of a question with several: the best plan of one cluster, number of GPUs or length.
struct PlanAnswer {
  std::string cluster;
  std::int64_t gpus = 0, sequence_length = 0;
  double board_watts = 0;  // as TrainingBill's
  std::optional<Plan> best;
  std::string refusal;  // where there is none
};
// With a mark at the fewest GPUs that do, and at the knee: the most whose throughput a GPU is four
// fifths of the best or more.
Table answers_table(const std::vector<PlanAnswer>& answers, const TrainingBill& bill);

}  // namespace zl
