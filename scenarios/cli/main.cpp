// The program `zerolab`: parses the command line, runs what it asks for, and turns every error into
// one message and an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/bootstrap/launch.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/threads/failures.h"
#include "core/threads/openmp_spin.h"
#include "results/environment.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/suggest.h"

namespace zl::cli {
namespace {

// CLI11's own names the checks of values, what excludes what, and what flags are set to.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    std::string text = " " + type.substr(0, type.find(':'));
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text + (option->get_required() ? " (required)" : "");
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    for (std::size_t at = 0; (at = name.find('{')) != std::string::npos;) {
      name.erase(at, name.find('}', at) + 1 - at);
    }
    return name;
  }
};

// Of the commands that people begin with.
void add_examples(CLI::App& app) {
  const auto add = [&app](const char* command, const char* lines) {
    app.get_subcommand(command)->footer(std::string("Examples:\n") + lines);
  };
  add("run",
      "  (each VALUE may be a list: every combination is run)\n"
      "  zerolab run demo\n"
      "  zerolab run llama3-8b --cluster 8xh100\n"
      "  zerolab run llama3-8b --cluster 8xh100,8xa100-80 --micro-batch 1,2,4 --strategy zero-3\n"
      "  zerolab run --model my-model/ --cluster 64xh100 --strategy ds_config.json -o csv\n"
      "  zerolab run llama3-8b --cluster 8xa100-80 --recompute none,full --sequence-length 8k");
  add("train",
      "  zerolab train gpt2-3m --data book.txt --steps 200 --lr 1e-3 --save weights.safetensors");
  add("evaluate",
      "  zerolab evaluate --model my-model/ --eval-data book.txt --sequence-length 1024 "
      "--eval-stride 512");
  add("tune",
      "  zerolab tune gpt2-3m --find-lr\n"
      "  zerolab tune gpt2-3m --lr 3e-4,1e-3,3e-3 --warmup-steps 0,20 --steps 200 --eval-data "
      "held-out.txt");
  add("show",
      "  zerolab show clusters\n"
      "  zerolab show model llama3-8b --sequence-length 8192\n"
      "  zerolab show strategy ds_config.json --ranks 8");
  add("import",
      "  zerolab import hf my-model/ --save my-model.json\n"
      "  zerolab import gguf my-model.gguf --out my-model\n"
      "  zerolab import deepspeed ds_config.json --ranks 8");
  add("validate", "  zerolab validate\n  zerolab validate --file our_runs.csv -o json");
  add("compare", "  zerolab compare 12 15 --fail-above 5%");
  add("capacity", "  zerolab capacity gpt2-3m --device-memory 2GiB");
  add("explain", "  zerolab explain llama3-8b --cluster 8xh100 --strategy zero-3");
  add("export", "  zerolab export llama3-8b-node --perfetto trace.json");
}

void describe(CLI::App& app, Action& action) {
  app.name("zerolab");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", [] {
    return fmt::format("zerolab {} ({})", ZL_VERSION, detect_environment().commit);
  });
  app.footer(
      "Exit codes: 0 ok, 1 failed, 2 usage, 3 invalid scenario, 4 infeasible, 5 backend\n"
      "unavailable, 6 regression, 130 interrupted.");
  add_verbosity(app);
  for (const auto add :
       {add_run,     add_train,      add_evaluate, add_generate,  add_tune,     add_runs,
        add_compare, add_show,       add_import,   add_calibrate, add_validate, add_bench,
        add_devices, add_plan,       add_capacity, add_explain,   add_paths,    add_report,
        add_export,  add_completion, add_help}) {
    add(app, action);
  }
  add_examples(app);
  collect_unknown(app);
}

// CLI11 has exit codes of its own; here a wrong command line is always 2.
int parse_failed(CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  throw Error(ErrorCode::usage, std::string(error.what()) + " (see zerolab --help)");
}

// Whether this process is a launched job's first one, or alone. That one speaks and stores; errors
// of all are heard, but for those that it tells.
bool is_first() { return !this_launch() || this_launch()->rank == 0; }

void hush() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) return;
  set_log_level(LogLevel::quiet);
}

// `help COMMAND` is `COMMAND --help`, which CLI11 would take for the command itself.
std::vector<const char*> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  if (argc < 3 || std::string_view(argv[1]) != "help") return arguments;
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  if (std::ranges::none_of(commands, [&](auto* each) { return each->get_name() == argv[2]; })) {
    return arguments;  // the command `help` says so
  }
  arguments.erase(arguments.begin() + 1);
  arguments.push_back("--help");
  return arguments;
}

// Sets is_silent when another rank tells what all agree on.
int run(int argc, char** argv, bool& is_silent) {
  CLI::App app(
      "Which strategy should train which model on which hardware: run it, or simulate it.");
  Action action;
  describe(app, action);
  try {
    const std::vector<const char*> arguments = arguments_of(app, argc, argv);
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    return parse_failed(app, error);
  }
  check_unknown(app);
  is_silent = !is_first();
  if (is_silent) hush();
  return action();
}

int report(const char* message, ErrorCode code) {
  print_error(message);
  return static_cast<int>(code);
}

}  // namespace
}  // namespace zl::cli

int main(int argc, char** argv) {
  zl::limit_openmp_spin(argv);
  std::signal(SIGXFSZ, SIG_IGN);  // a file above ulimit -f is an error like a full disk
  bool is_silent = false;
  try {
    return zl::cli::run(argc, argv, is_silent);
  } catch (const zl::RankLeft& error) {
    if (is_silent) return static_cast<int>(error.code());
    return zl::cli::report(error.what(), error.code());
  } catch (const zl::Error& error) {
    return zl::cli::report(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return zl::cli::report("out of host memory", zl::ErrorCode::failed);
  } catch (const std::exception& error) {
    return zl::cli::report(error.what(), zl::ErrorCode::failed);
  }
}
