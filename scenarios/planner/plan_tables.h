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

// How much is to be trained, and what a GPU costs.
struct TrainingBill {
  double tokens = 0;          // 0: not asked
  double gpu_hour_price = 0;  // likewise

  bool is_asked() const { return tokens > 0 || gpu_hour_price > 0; }
};

// "15T", "300B", "2.5e9". Throws Error{usage} naming the text.
double parse_tokens(const std::string& text);
// "2.5/gpu-hour". Throws Error{usage} where the unit is missing.
double parse_price(const std::string& text);

Table plan_table(const std::vector<Plan>& plans, const TrainingBill& bill);
std::string plans_text(const Plans& plans, const TrainingBill& bill, Format format);
Json plans_json(const Plans& plans, const TrainingBill& bill);
// "tp8-pp4-zero-1: 12.3 s a step, 61 GB of 80 GB".
std::string plan_line(const Plan& plan);
// What was tried, in a line.
std::string counts_line(const Plans& plans);

// One answer of a question with several: the best plan of one cluster, number of GPUs or length.
struct PlanAnswer {
  std::string cluster;
  std::int64_t gpus = 0, sequence_length = 0;
  std::optional<Plan> best;
  std::string refusal;  // where there is none
};
// With a mark at the fewest GPUs that do, and at the knee: the most whose throughput a GPU is four
// fifths of the best or more.
Table answers_table(const std::vector<PlanAnswer>& answers, const TrainingBill& bill);

}  // namespace zl
