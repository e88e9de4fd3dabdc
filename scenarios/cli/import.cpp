// `zerolab import`: files of other programs as zerolab's own.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/dtype.h"
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
#include "scenarios/files/import_gguf.h"
#include "scenarios/files/import_huggingface.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/torchtitan.h"
#include "scenarios/report/show.h"
#include "scenarios/run/checkpoint_model.h"
#include "scenarios/weights/save_model.h"

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
  const std::string text = read_file(path);
  require_no_pickle(text, path);
  const ModelConfig model = import_huggingface(text, path);
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

// Of software whose files have other keys than DeepSpeed's: the strategy that they mean.
template <ImportedStrategy (*import)(std::string_view, std::string_view, const ImportContext&)>
int import_launch_file(const ImportOptions& options) {
  const Format format = parse_format(options.format);
  ModelConfig model;
  const ImportedStrategy imported =
      import(read_file(options.file), options.file, import_context(options.context, model));
  const Json strategy = strategy_to_json(imported.strategy);
  save(options, strategy);
  say_notes(imported, "--verbose says why");
  say_problems(imported);
  log_info(imported.strategy.name + ": " + std::to_string(imported.ranks) + " ranks");
  print(format == Format::json ? pretty(strategy) : render(leaves(strategy), format));
  return 0;
}

struct GgufOptions {
  std::string file, out, dtype = "fp32", format = "table";
  bool force = false;
};

int import_gguf_file(const GgufOptions& options) {
  const Format format = parse_format(options.format);
  const GgufImport done =
      import_gguf(options.file, options.out, parse_dtype(options.dtype), options.force);
  for (const std::string& file : done.files) log_info("wrote " + file);
  if (!done.has_tokenizer) log_warning(options.file + " has no tokenizer; none was written");
  const Json shown = {{"model_type", done.model_type},
                      {"parameters", done.parameters},
                      {"tensors", done.tensors},
                      {"dtype", options.dtype},
                      {"folder", options.out}};
  print(format == Format::json ? pretty(shown) : render(leaves(shown), format));
  return 0;
}

void add_gguf(CLI::App& import, Action& action) {
  CLI::App* sub = import.add_subcommand(
      "gguf", "GGUF file of llama.cpp: writes it as a Hugging Face folder, with its tokenizer");
  const auto options = std::make_shared<GgufOptions>();
  sub->add_option("file", options->file, "File to read")->required();
  sub->add_option("--out", options->out, "Folder to write")->required();
  sub->add_option("--dtype", options->dtype, "Weights as fp32 (default), bf16 or fp16");
  sub->add_flag("--force", options->force, "Replace files that are already there");
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return import_gguf_file(*options); }; });
}

struct CheckpointOptions {
  std::string folder, out, source, dtype, format = "table";
};

int import_checkpoint(const CheckpointOptions& options) {
  const Format format = parse_format(options.format);
  const CheckpointedRun run = read_checkpointed_run(options.folder);
  SaveModelOptions how{.source = options.source, .sparse = run.is.strategy.sparse_attention};
  if (!options.dtype.empty()) how.dtype = parse_dtype(options.dtype);
  check_model_folder(options.out);
  SavedModel model(options.out, run.is.model, how);
  gather_checkpointed_model(run, [&](const ParameterSpec& spec, const std::vector<float>& values) {
    model.take(spec, values);
  });
  model.commit();
  log_info("wrote " + options.out);
  const Json shown = {{"model", run.is.model.name},
                      {"strategy", run.is.strategy.name},
                      {"ranks", run.ranks},
                      {"step", run.step},
                      {"folder", options.out}};
  print(format == Format::json ? pretty(shown) : render(leaves(shown), format));
  return 0;
}

void add_checkpoint(CLI::App& import, Action& action) {
  CLI::App* sub = import.add_subcommand(
      "checkpoint", "Checkpoint of a run: writes its model as a Hugging Face folder");
  const auto options = std::make_shared<CheckpointOptions>();
  sub->add_option("folder", options->folder, "Folder of --checkpoint, or of one strategy in it")
      ->required();
  sub->add_option("--out", options->out, "Folder to write")->required();
  sub->add_option("--source", options->source,
                  "Folder that the run began with, whose configuration and tokenizer are kept");
  sub->add_option("--dtype", options->dtype, "Weights as fp32 (default), bf16 or fp16");
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return import_checkpoint(*options); }; });
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
  CLI::App* import = app.add_subcommand(
      "import",
      "Read a Hugging Face model, a GGUF file, a checkpoint, or the configuration of DeepSpeed, "
      "Megatron-LM or torchtitan");
  const auto hf = std::make_shared<ImportOptions>();
  hf->format = "table";
  add_one(*import, action, "hf",
          "config.json of a GPT-2, Llama, Mistral, Qwen, Gemma or Phi-3 model, or its folder",
          import_hf, hf);
  const auto deepspeed = std::make_shared<ImportOptions>();
  deepspeed->format = "json";
  CLI::App& sub = add_one(*import, action, "deepspeed",
                          "DeepSpeed configuration: the strategy it means, with every value",
                          import_deepspeed_file, deepspeed);
  add_strategy_context(sub, deepspeed->context);
  const auto add_launch = [&](const char* name, const char* what,
                              int (*run)(const ImportOptions&)) {
    const auto options = std::make_shared<ImportOptions>();
    options->format = "json";
    add_strategy_context(add_one(*import, action, name, what, run, options), options->context);
  };
  add_launch("megatron", "Script or arguments of Megatron-LM: the strategy that they mean",
             import_launch_file<import_megatron>);
  add_launch("torchtitan", "TOML of torchtitan: the strategy that it means",
             import_launch_file<import_torchtitan>);
  add_gguf(*import, action);
  add_checkpoint(*import, action);
}

}  // namespace zl::cli
