// Options that several subcommands share.
// Ownership: values, filled while the command line is parsed. Threads: the main thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/format.h"
#include "results/store.h"
#include "scenarios/cli/swept_options.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/runner.h"

namespace CLI {
class App;
}

namespace zl::cli {

// Of options that count ranks or steps: CLI11's own check of positive numbers prints 309 digits.
inline constexpr std::int64_t kMaxCount = 1'000'000;

struct DatabaseOptions {
  std::string file;  // empty: the default path
  bool off = false;
  std::vector<std::string> tags = {};  // of the runs that are stored

  bool is_used() const;  // of launched ranks the first one stores
  // Throws Error{failed} where the named file's folder is not there: a typing error makes none.
  std::filesystem::path path() const;
};

void add_scenario_options(CLI::App& app, ScenarioOptions& options);
void add_database_options(CLI::App& app, DatabaseOptions& options);
void add_collective_timeout(CLI::App& app, std::chrono::milliseconds& timeout);
void add_checkpoint(CLI::App& app, CheckpointConfig& checkpoint);
void add_keep_going(CLI::App& app, bool& keep_going);
void add_format(CLI::App& app, std::string& format, const std::string& accepted);
void add_verbosity(CLI::App& app);  // --quiet, --verbose

// The scenario the options name. Throws Error{usage} when they name none or give an option several
// values, else as load_scenario.
Scenario load(const ScenarioOptions& options);

// One for each combination of the options' values; the last option varies first. Throws as load().
std::vector<Scenario> load_all(const ScenarioOptions& options);

// --backend, else cpu on "local" and sim, said aloud, on any other cluster. Throws
// Error{unavailable} or Error{usage} for a backend that cannot be used, Error{invalid} for ranks
// that a real one cannot run.
std::vector<std::string> choose_backends(const std::vector<std::string>& given,
                                         const Scenario& scenario, const Runner& runner);

// That the backends can run the scenario, as choose_backends() makes sure of.
void check_backends(const std::vector<std::string>& backends, const Scenario& scenario,
                    const Runner& runner);

// Throws Error{unavailable} with the reason, or Error{usage} with the known names.
void require_backend(const Runner& runner, const std::string& backend);

// Throws Error{usage} unless `format` is table or json.
Format table_or_json(const std::string& format);

}  // namespace zl::cli
