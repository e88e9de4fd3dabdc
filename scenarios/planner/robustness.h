// What a plan is worth over weeks, on devices that fail and on some that are slow.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "results/format.h"
#include "scenarios/planner/plan_request.h"

namespace zl {

struct RobustnessQuestion {
  double mean_between_failures = 0;  // of one device, seconds; 0: none fails
  double restart_seconds = 600;      // beside reading the checkpoint: noticing, launching
  double slow_share = 0;             // of devices, of which each step has others; 0: none is slow
  double slowdown = 1;               // of what such a device computes

  bool is_asked() const { return mean_between_failures > 0 || slow_share > 0; }
};

struct Robustness {
  double step_seconds = 0;            // expected, stragglers included
  std::int64_t checkpoint_bytes = 0;  // of the node that writes most
  double write_seconds = 0;
  double mean_between_failures = 0;            // of all devices; 0: none fails
  std::int64_t steps_between = 0;              // checkpoints; 0: none fails
  double young_seconds = 0, daly_seconds = 0;  // between them, by these
  double goodput = 1;
  double played_goodput = 1;     // of that many failures drawn at random
  double tokens_per_second = 0;  // that last
};

// One plan of a request. A synchronous step is as slow as its slowest device: it is priced anew
// with all devices slow, for the share of steps that meet a slow one. A checkpoint is weights and
// optimizer state in fp32, each part written once, by the file bandwidth of a node.
Robustness robustness_of(const PlanRequest& request, const Plan& plan,
                         const RobustnessQuestion& question);

Table robustness_table(const std::vector<Plan>& plans, const std::vector<Robustness>& all);

}  // namespace zl
