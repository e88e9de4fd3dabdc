// Plans in words: what to call one, how simple it is, and why it is better than another.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/planner/found_plan.h"

namespace zl {

// "tp8 pp4 dp2 zero-1 interleaved x2, recompute full".
std::string mesh_text(const Strategy& strategy, std::int64_t ranks);
// "interleaved x2"; "-" without a pipeline.
std::string schedule_text(const PipelineConfig& pipeline);
// The ZeRO stage and what is offloaded: "1, optimizer on host".
std::string state_text(const Strategy& strategy);
// The same as a strategy's name: "zero-1 + tp8 pp4".
std::string plan_name(const Strategy& strategy);

// How many things there are to it that a plain data-parallel run does not have.
int complexity(const Strategy& strategy);

// "4.2 % faster: 310 ms less bubble, 120 ms more tensor communication": the parts of a step that
// make the difference.
std::string time_beside(const Plan& plan, const Plan& other);
// "1.20 GiB less memory"; empty: as much.
std::string memory_beside(const Plan& plan, const Plan& other);
// "13 of 80 layers recomputed, not 28"; empty: as many.
std::string recomputed_beside(const Plan& plan, const Plan& other);
// All three.
std::string why_better(const Plan& plan, const Plan& other);

// What is recomputed, of some blocks with the layers of a stage: "blocks:4 of 12", "blocks:3,1 of
// 12".
std::string recomputed_text(const Plan& plan);
// Of each stage, the layers that are recomputed as a whole. Empty: its layers are not known.
std::vector<std::int64_t> recomputed_layers(const Plan& plan);

}  // namespace zl
