// Questions with several answers: the best plan of each cluster, number of GPUs or length.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/planner/plan_tables.h"

namespace zl {

// Of a cluster, whatever their number: "256xh100" -> "h100".
std::string kind_of_gpus(const std::string& cluster);

struct PlanAnswer {
  std::string cluster;
  std::int64_t gpus = 0, sequence_length = 0;
  double board_watts = 0, gpu_hour_price = 0;  // as TrainingBill's
  std::optional<Plan> best;
  std::string refusal = {};  // where there is none
};

// Marked are: of several numbers of GPUs of a kind the fewest that fit, and the knee, which is the
// most whose throughput a GPU is four fifths of the best or more, where more GPUs were tried; of
// several kinds the one that is cheapest, without prices that takes the fewest GPU-hours.
Table answers_table(const std::vector<PlanAnswer>& answers, const TrainingBill& bill);
Json answers_json(const std::vector<PlanAnswer>& answers, const TrainingBill& bill);

}  // namespace zl
