// A configuration that somebody runs today, whatever software it is of.
// Ownership: values. Threads: pure function.
#pragma once

#include <string>

#include "scenarios/deepspeed/imported_strategy.h"

namespace zl {

// A catalogue strategy by name; of files: a scenario with one strategy, a strategy or DeepSpeed's
// JSON, torchtitan's TOML (.toml), and anything else as Megatron-LM's arguments. The context has
// model and ranks. Throws Error{invalid} as their importers, for a scenario of several strategies,
// and naming what of the file is not implemented.
ImportedStrategy import_any(const std::string& name_or_path, const ImportContext& context);

}  // namespace zl
