#include "scenarios/cli/swept_options.h"

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace zl::cli {
namespace {

// "selective:attention,mlp" and "blocks:2,1" are one value each.
void join_lists(std::vector<std::string>& values) {
  for (std::size_t i = 1; i < values.size();) {
    const std::string &before = values[i - 1], &value = values[i];
    const bool goes_on = (before == "selective:attention" && value == "mlp") ||
                         (before.starts_with("blocks:") && integer_in(value).has_value());
    if (!goes_on) {
      ++i;
      continue;
    }
    values[i - 1] += "," + value;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Paths stay whole.
std::vector<std::string> values_of(const std::string& text) {
  if (is_file(text)) return {text};
  std::vector<std::string> values{""};
  for (const char c : text) {
    if (c == ',') {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  join_lists(values);
  return values;
}

void set_lr(const std::string& text, ScenarioOverrides& overrides) {
  const double lr = real_in(text).value_or(-1);
  if (!(lr >= 0 && lr < 1e38)) {
    throw Error(ErrorCode::usage,
                "--lr: \"" + shortened(text) + "\" is not a learning rate, such as 3e-4");
  }
  overrides.edits.lr = lr;
}

void add_count_edit(CLI::App& app, ScenarioOptions& options, const std::string& name,
                    const std::string& help, std::optional<std::int64_t> StrategyEdits::*member) {
  add_swept(app, options, name, help,
            [name, member](const std::string& text, ScenarioOverrides& o) {
              o.edits.*member = of_option(name, [&] { return parse_count(text, 1000); });
            });
}

void add_mesh_edits(CLI::App& app, ScenarioOptions& options) {
  add_count_edit(app, options, "--tensor",
                 "Of every strategy: ranks that share each layer's heads and MLP columns; it "
                 "divides --ranks",
                 &StrategyEdits::tensor);
  app.add_flag_callback(
      "--sequence-parallel", [&options] { options.overrides.edits.sequence_parallel = true; },
      "Of every strategy: norms and dropout on a part of the rows on each rank of --tensor");
  app.add_flag_callback(
      "--tensor-overlap", [&options] { options.overrides.edits.tensor_overlap = true; },
      "Of every strategy: what ranks of --tensor exchange in backward travels beside products");
  add_count_edit(app, options, "--replicate",
                 "Of every strategy: copies of ZeRO's shards (HSDP), each over neighbouring ranks",
                 &StrategyEdits::replicate);
  add_count_edit(app, options, "--pipeline",
                 "Of every strategy: ranks that share the model's layers; it divides --ranks",
                 &StrategyEdits::pipeline);
  add_count_edit(app, options, "--virtual-stages",
                 "Of every strategy: parts of the model on each rank of a pipeline",
                 &StrategyEdits::virtual_stages);
  add_swept(app, options, "--schedule",
            "Of every strategy: 1f1b, gpipe, breadth-first, interleaved, zb-h1, zb-h2, "
            "interleaved-zb, zb-v or dualpipe-v",
            [](const std::string& text, ScenarioOverrides& o) { o.edits.schedule = text; });
  app.add_option("--layers-per-stage", options.overrides.edits.layers_per_stage,
                 "Of every strategy: layers of each stage of a pipeline, or even, units, "
                 "parameters or cost")
      ->type_name("N,N..|WAY");
}

}  // namespace

void add_swept(CLI::App& app, ScenarioOptions& options, const std::string& name,
               const std::string& help,
               std::function<void(const std::string&, ScenarioOverrides&)> set) {
  app.add_option_function<std::string>(
         name,
         [&options, name, set = std::move(set)](const std::string& text) {
           if (text.empty()) return;  // check_values() says so
           const std::vector<std::string> values = values_of(text);
           if (values.size() == 1) return set(text, options.overrides);
           options.sweeps.push_back({name, values, set});
         },
         help)
      ->type_name("VALUE");
}

void add_edits(CLI::App& app, ScenarioOptions& options) {
  add_swept(app, options, "--recompute",
            "Of every strategy: none, full, every:K, blocks:N or of each stage blocks:N,N.., "
            "selective:attention, selective:products, auto",
            [](const std::string& text, ScenarioOverrides& o) { o.edits.recompute = text; });
  add_swept(app, options, "--offload", "Of every strategy: none, cpu or nvme",
            [](const std::string& text, ScenarioOverrides& o) { o.edits.offload = text; });
  add_mesh_edits(app, options);
  add_swept(app, options, "--lr", "Learning rate of every strategy", set_lr);
  add_count_edit(app, options, "--warmup-steps",
                 "Of every strategy: steps in which the learning rate rises to its own",
                 &StrategyEdits::warmup);
}

}  // namespace zl::cli
