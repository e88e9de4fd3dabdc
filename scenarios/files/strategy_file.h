// Strategies by name or file.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/deepspeed/import.h"

namespace zl {

struct StrategyText {
  std::string text, source;
};

// As load_strategy() finds it. Throws Error{invalid} for an unknown name, with the nearest one, and
// for a file that is something else, saying what and how it is used.
StrategyText read_strategy(const std::string& name_or_path);

// A catalogue name (aliases followed) or the path of a DeepSpeed file. Throws like import_deepspeed
// and, for an unknown name, with the nearest one.
ImportedStrategy load_strategy(const std::string& name_or_path, const ImportContext& context);

// The same for `show`: rejected keys are reported in the result.
ImportedStrategy inspect_strategy(const std::string& name_or_path, const ImportContext& context);

}  // namespace zl
