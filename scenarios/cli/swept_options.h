// Options that take one value, or a list of them to sweep over.
// Ownership: the options refer to what they fill. Threads: the main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "scenarios/files/load_scenario.h"

namespace CLI {
class App;
}

namespace zl::cli {

// What `read` returns; errors of reading an option's value get its name in front.
template <class Read>
auto of_option(const std::string& name, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(ErrorCode::usage, name + ": " + error.what());
  }
}

// An option with several values: "--micro-batch 1,2,4".
struct Sweep {
  std::string option;
  std::vector<std::string> values;
  std::function<void(const std::string&, ScenarioOverrides&)> set;
};

struct ScenarioOptions {
  std::string scenario;  // empty: --model alone
  ScenarioOverrides overrides;
  std::vector<Sweep> sweeps;
  std::vector<std::string> backends;
};

// set: takes one value; a list becomes a sweep of `options`.
void add_swept(CLI::App& app, ScenarioOptions& options, const std::string& name,
               const std::string& help,
               std::function<void(const std::string&, ScenarioOverrides&)> set);

// What people vary most of a strategy, whatever its file says.
void add_edits(CLI::App& app, ScenarioOptions& options);

}  // namespace zl::cli
