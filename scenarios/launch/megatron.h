// Megatron-LM: a plan as the arguments of pretrain_gpt.py (megatron-core 0.16), and such arguments
// as a strategy.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/deepspeed/imported_strategy.h"
#include "scenarios/launch/launch_file.h"

namespace zl {

// A shell script that launches the plan with torchrun; data and tokenizer are its own arguments.
LaunchFile write_megatron(const Strategy& strategy, const LaunchFacts& facts);

// Of a model: "--num-layers 32"; what of it Megatron-LM's arguments do not say goes into `notes`.
// Error{invalid} for an encoder.
std::vector<std::string> megatron_model_arguments(const LaunchFacts& facts,
                                                  std::vector<std::string>& notes);

// A script, or arguments alone. Without ranks of a context (infer_ranks) those of its torchrun
// count, else those that its batch and mesh imply. Throws Error{invalid} "source:line: ...".
ImportedStrategy import_megatron(std::string_view text, std::string_view source,
                                 const ImportContext& context);

}  // namespace zl
