// The options that say for which run a strategy file is read, where nothing runs.
// Ownership: values, filled while the command line is parsed. Threads: the main thread.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/deepspeed/import.h"

namespace CLI {
class App;
}

namespace zl::cli {

struct StrategyContext {
  std::int64_t ranks = 0;  // 0: the cluster's, or those that the file implies
  std::string model;
  std::string cluster;
};

void add_strategy_context(CLI::App& app, StrategyContext& options);

// `model` is filled with the one that the context refers to. Throws Error{invalid} for names that
// are unknown.
ImportContext import_context(const StrategyContext& options, ModelConfig& model);

}  // namespace zl::cli
