#include "scenarios/cli/suggest.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace zl::cli {
namespace {

const auto kAll = [](const CLI::App*) { return true; };

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(kAll)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : full_name(*app.get_parent()) + " " + app.get_name();
}

// What an error begins with: nothing of the program itself, whose name every error has.
std::string before(const CLI::App& app) {
  return app.get_parent() == nullptr ? "" : full_name(app) + ": ";
}

[[noreturn]] void refuse(const CLI::App& app, const std::string& what, const std::string& word,
                         const std::vector<std::string>& known) {
  std::string message = before(app) + "unknown " + what + " \"" + word + "\"";
  if (!known.empty()) message += "; the nearest is \"" + nearest(word, known) + "\"";
  if (what == "command") message += ". Commands: " + join(known, ", ");
  throw Error(ErrorCode::usage, message + " (see " + full_name(app) + " --help)");
}

// CLI11 takes an empty word for a number that was not given.
void check_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (!value.empty()) continue;
      throw Error(ErrorCode::usage, before(app) + option->get_name() +
                                        ": \"\" is no value; write one, or leave it out (see " +
                                        full_name(app) + " --help)");
    }
  }
}

void check_words(const CLI::App& app) {
  const std::vector<std::string> commands = subcommand_names(app);
  for (const std::string& word : app.remaining()) {
    if (word == "--stack" || word.starts_with("--stack=")) {
      throw Error(ErrorCode::usage,
                  before(app) + "--stack is now --software NAME (see zerolab show software)");
    }
    if (word.starts_with("-")) {
      refuse(app, "option", word.substr(0, word.find('=')), option_names(app));
    }
  }
  if (!app.remaining().empty()) {
    const std::string word = app.remaining().front();
    if (!commands.empty()) refuse(app, "command", word, commands);
    refuse(app, "argument", word, {});
  }
}

}  // namespace

void collect_unknown(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands(kAll)) collect_unknown(*sub);
}

void check_unknown(const CLI::App& app) {
  check_words(app);
  check_values(app);
  const std::vector<CLI::App*> given = app.get_subcommands();
  for (const CLI::App* sub : given) check_unknown(*sub);
  const std::vector<std::string> commands = subcommand_names(app);
  const bool optional = app.get_require_subcommand_max() == 1;  // as `runs` says
  if (given.empty() && !commands.empty() && !optional) {
    throw Error(ErrorCode::usage, before(app) +
                                      "a command is missing. Commands: " + join(commands, ", ") +
                                      " (see " + full_name(app) + " --help)");
  }
}

}  // namespace zl::cli
