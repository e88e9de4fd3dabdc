// `zerolab completion bash|zsh|fish`: what a shell completes, made of the parser itself. Names of
// the catalogue are asked of the program when they are completed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/output.h"
#include "scenarios/launch/launch.h"

namespace zl::cli {
namespace {

using Pair = std::pair<const char*, const char*>;

// Options whose values `zerolab show KIND` lists, and those of a few words.
constexpr std::array kNames = {Pair{"--model", "models"}, Pair{"--cluster", "clusters"},
                               Pair{"--strategy", "strategies"}, Pair{"--software", "software"}};
constexpr std::array kWords = {
    Pair{"--backend", "cpu cuda sim"}, Pair{"--format", "table wide md csv json"},
    Pair{"--precision", "fp32 bf16 fp16"}, Pair{"--offload", "none cpu nvme"}};
constexpr std::array kShown = {Pair{"model", "models"}, Pair{"cluster", "clusters"},
                               Pair{"software", "software"}, Pair{"strategy", "strategies"},
                               Pair{"scenario", "studies"}};
constexpr const char* kFormats = "table wide md csv json";

// Of `plan -o`, besides.
std::string launch_words() {
  std::string words = std::string(kFormats) + " zerolab";
  for (int i = 0; i < kLaunchSoftware; ++i) {
    words += std::string(" ") + name_of(static_cast<LaunchSoftware>(i));
  }
  return words;
}

constexpr const char* kAsk =
    "zerolab show {} -o json 2>/dev/null | sed -n 's/^[[ ]*{{\"[a-z]*\":\"\\([^\"]*\\)\".*/\\1/p'";

struct Flag {
  std::vector<std::string> names;  // with their dashes
  bool takes_value = false;
  std::string what;
};

struct Command {
  std::string name, what;
  std::vector<Flag> flags;
  std::vector<std::string> subcommands;

  std::string all_names(bool only_long) const {
    std::string text;
    for (const Flag& flag : flags) {
      for (const std::string& each : flag.names) {
        if (!only_long || each.starts_with("--")) text += (text.empty() ? "" : " ") + each;
      }
    }
    return text;
  }
};

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || !option->nonpositional()) continue;
    Flag& flag = flags.emplace_back();
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    flag.takes_value = option->get_items_expected_max() > 0 && option->get_type_size_max() > 0;
    flag.what = option->get_description();
  }
  return flags;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* sub : app.get_subcommands(all)) {
    Command& command = commands.emplace_back();
    command = {sub->get_name(), sub->get_description(), flags_of(*sub), {}};
    for (const CLI::App* each : sub->get_subcommands(all)) {
      command.subcommands.push_back(each->get_name());
    }
  }
  return commands;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return joined(names);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string bash(const std::vector<Command>& commands) {
  const std::string top = names_of(commands) + " --help --version";
  std::string text = "# bash completion of zerolab: zerolab completion bash\n_zerolab_names() { " +
                     fmt::format(kAsk, "\"$1\"") +
                     "; }\n_zerolab() {\n"
                     "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
                     "list=\"\"\n  case \"$before\" in\n";
  for (const auto& [option, kind] : kNames) {
    text += fmt::format("    {}) list=$(_zerolab_names {}) ;;\n", option, kind);
  }
  for (const auto& [option, words] : kWords) {
    text += fmt::format("    {}) list='{}' ;;\n", option, words);
  }
  text +=
      fmt::format("    -o) list='{}'; [ \"${{COMP_WORDS[1]}}\" = plan ] && list='{}' ;;\n  esac\n",
                  kFormats, launch_words());
  text += "  if [ -z \"$list\" ]; then\n    case \"${COMP_WORDS[1]}\" in\n";
  for (const Command& command : commands) {
    text += fmt::format("      {}) list='{}' ;;\n", command.name, command.all_names(true));
  }
  text += fmt::format("      *) list='{}' ;;\n    esac\n", top);
  text += fmt::format("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n      list='{}'\n", top);
  text +=
      "    elif [ \"$before\" = run ]; then\n"
      "      list+=\" $(_zerolab_names studies) $(_zerolab_names models)\"\n    else\n"
      "      case \"${COMP_WORDS[1]}:$before\" in\n";
  for (const Command& command : commands) {
    if (command.subcommands.empty()) continue;
    text +=
        fmt::format("        {0}:{0}) list='{1}' ;;\n", command.name, joined(command.subcommands));
  }
  text += fmt::format("        help:help) list='{}' ;;\n", names_of(commands));
  text += "        completion:completion) list='bash zsh fish' ;;\n";
  for (const auto& [name, kind] : kShown) {
    text += fmt::format("        show:{}) list=$(_zerolab_names {}) ;;\n", name, kind);
  }
  return text +
         "      esac\n    fi\n  fi\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$word\")\n}\n"
         "complete -o default -F _zerolab zerolab\n";
}

// Between single quotes.
std::string for_fish(const std::string& text) {
  return replaced(replaced(text, "\\", "\\\\"), "'", "\\'");
}

std::string fish_flag(const Command& command, const Flag& flag) {
  std::string line =
      fmt::format("complete -c zerolab -n '__fish_seen_subcommand_from {}'", command.name);
  std::string values;
  for (const std::string& name : flag.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    for (const auto& [option, kind] : kNames) {
      if (name == option) values = fmt::format("(__zerolab_names {})", kind);
    }
    for (const auto& [option, words] : kWords) {
      if (name == option) values = words;
    }
    if (name == "--format" && command.name == "plan") values = launch_words();
  }
  if (flag.takes_value) line += values.empty() ? " -r" : " -x -a '" + values + "'";
  return line + " -d '" + for_fish(flag.what) + "'\n";
}

std::string fish(const std::vector<Command>& commands) {
  std::string text =
      "# fish completion of zerolab: zerolab completion fish\nfunction "
      "__zerolab_names; " +
      fmt::format(kAsk, "$argv[1]") + "; end\ncomplete -c zerolab -f\n";
  for (const Command& command : commands) {
    text += fmt::format("complete -c zerolab -n __fish_use_subcommand -a {} -d '{}'\n",
                        command.name, for_fish(command.what));
    for (const Flag& flag : command.flags) text += fish_flag(command, flag);
    if (command.subcommands.empty()) continue;
    text += fmt::format("complete -c zerolab -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                        command.name, joined(command.subcommands));
  }
  text +=
      "complete -c zerolab -n '__fish_seen_subcommand_from run' -F -a '(__zerolab_names studies)"
      " (__zerolab_names models)'\n"
      "complete -c zerolab -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  text += fmt::format("complete -c zerolab -n '__fish_seen_subcommand_from help' -a '{}'\n",
                      names_of(commands));
  for (const auto& [name, kind] : kShown) {
    text += fmt::format(
        "complete -c zerolab -n '__fish_seen_subcommand_from {}' -a '(__zerolab_names {})'\n", name,
        kind);
  }
  return text;
}

std::string zsh(const std::vector<Command>& commands) {
  std::string text =
      "#compdef zerolab\n# zsh completion of zerolab: zerolab completion zsh\n"
      "_zerolab_names() { local -a names; names=(${(f)\"$(" +
      fmt::format(kAsk, "\"$1\"") +
      ")\"}); compadd -a names }\n_zerolab() {\n"
      "  local -a commands options\n  commands=(\n";
  for (const Command& command : commands) {
    text += fmt::format("    '{}:{}'\n", command.name, replaced(command.what, "'", "'\\''"));
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  case $words[CURRENT-1] in\n";
  for (const auto& [option, kind] : kNames) {
    text += fmt::format("    {}) _zerolab_names {}; return ;;\n", option, kind);
  }
  for (const auto& [option, words] : kWords) {
    text += fmt::format("    {}) compadd {}; return ;;\n", option, words);
  }
  text += fmt::format(
      "    -o) if [[ $words[2] == plan ]]; then compadd {}; else compadd {}; fi; return ;;\n  "
      "esac\n"
      "  case $words[2] in\n",
      launch_words(), kFormats);
  for (const Command& command : commands) {
    text += fmt::format("    {}) options=({}) ;;\n", command.name, command.all_names(false));
  }
  text += "  esac\n  case $words[2]:$words[CURRENT-1] in\n";
  for (const Command& command : commands) {
    if (command.subcommands.empty()) continue;
    text += fmt::format("    {0}:{0}) compadd {1} ;;\n", command.name, joined(command.subcommands));
  }
  text += fmt::format("    help:help) compadd {} ;;\n", names_of(commands));
  text += "    completion:completion) compadd bash zsh fish ;;\n";
  for (const auto& [name, kind] : kShown) {
    text += fmt::format("    show:{}) _zerolab_names {} ;;\n", name, kind);
  }
  return text +
         "    run:run) _zerolab_names studies; _zerolab_names models; _files ;;\n"
         "    *) [[ $words[CURRENT] == -* ]] && compadd -a options || _files ;;\n"
         "  esac\n}\n_zerolab \"$@\"\n";
}

int complete(const CLI::App& app, const std::string& shell) {
  const std::vector<Command> commands = commands_of(app);
  if (shell == "bash") {
    print(bash(commands));
  } else if (shell == "zsh") {
    print(zsh(commands));
  } else if (shell == "fish") {
    print(fish(commands));
  } else {
    throw Error(ErrorCode::usage, "completion: \"" + shell + "\" is not one of bash, zsh, fish");
  }
  return 0;
}

const CLI::App& find_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    try {
      found = found->get_subcommand(word);
    } catch (const CLI::OptionNotFound&) {
      throw Error(ErrorCode::usage,
                  "help: there is no command \"" + joined(words) + "\"; see zerolab help");
    }
  }
  return *found;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "completion", "Completions for a shell, such as: source <(zerolab completion bash)");
  const auto shell = std::make_shared<std::string>();
  sub->add_option("shell", *shell, "bash, zsh or fish")->required();
  sub->callback(
      [&app, shell, &action] { action = [&app, shell] { return complete(app, *shell); }; });
}

void add_help(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("help", "The help of a command, as --help of it");
  const auto words = std::make_shared<std::vector<std::string>>();
  sub->add_option("command", *words, "Such as run, or show model");
  sub->callback([&app, words, &action] {
    action = [&app, words] {
      print(find_command(app, *words).help());
      return 0;
    };
  });
}

}  // namespace zl::cli
