// The subcommands of `zerolab`, one file each: every function adds its own to the parser.
// Ownership: the parser's callbacks own the options they fill. Threads: the main thread.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace zl::cli {

// What the parsed command line asks for; returns the exit code. Set by the subcommand that was
// given, run by main once the whole line is known to be right.
using Action = std::function<int()>;

void add_runs(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_evaluate(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_capacity(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_paths(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);

}  // namespace zl::cli
