// `zerolab import`: files of other programs as zerolab's own.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/log.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/notes.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/show_lists.h"
#include "scenarios/cli/strategy_context.h"
#include "scenarios/files/defaults.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/import_huggingface.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/report/show.h"

namespace zl::cli {
namespace {

struct ImportOptions {
  std::string file;
  std::string save;
  std::string format;
  StrategyContext context;
};

void save(const ImportOptions& options, const Json& object) {
  if (options.save.empty()) return;
  write_file(options.save, pretty(object));
  log_info("wrote " + options.save);
}

int import_hf(const ImportOptions& options) {
  const Format format = parse_format(options.format);
  const std::string path = model_path(options.file);
  const ModelConfig model = import_huggingface(read_file(path), path);
  if (is_long_by_default(model)) log_warning(long_default_text(model));
  save(options, model_to_json(model));
  const Json shown = show_model(model);
  print(format == Format::json ? pretty(shown) : render(leaves(shown), format));
  return 0;
}

int import_deepspeed_file(const ImportOptions& options) {
  const Format format = parse_format(options.format);
  ModelConfig model;
  const ImportedStrategy imported = import_deepspeed(read_file(options.file), options.file,
                                                     import_context(options.context, model));
  const Json strategy = strategy_file_json(imported, options.context.ranks > 0);
  save(options, strategy);
  say_notes(imported);
  say_problems(imported);
  print(format == Format::json ? pretty(strategy) : render(leaves(strategy), format));
  return 0;
}

CLI::App& add_one(CLI::App& import, Action& action, const char* name, const char* what,
                  int (*run)(const ImportOptions&), const std::shared_ptr<ImportOptions>& options) {
  CLI::App* sub = import.add_subcommand(name, what);
  sub->add_option("file", options->file, "File to read")->required();
  sub->add_option("--save", options->save, "Write what was read as a file of zerolab's own");
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
  return *sub;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* import = app.add_subcommand("import", "Read a Hugging Face model or DeepSpeed file");
  const auto hf = std::make_shared<ImportOptions>();
  hf->format = "table";
  add_one(*import, action, "hf",
          "config.json of a GPT-2, Llama, Mistral or Qwen2 model, or its folder", import_hf, hf);
  const auto deepspeed = std::make_shared<ImportOptions>();
  deepspeed->format = "json";
  CLI::App& sub = add_one(*import, action, "deepspeed",
                          "DeepSpeed configuration: the strategy it means, with every value",
                          import_deepspeed_file, deepspeed);
  add_strategy_context(sub, deepspeed->context);
}

}  // namespace zl::cli
