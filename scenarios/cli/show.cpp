// `zerolab show`: one model, cluster, strategy or scenario with its derived numbers.
#include "scenarios/report/show.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/notes.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/show_lists.h"
#include "scenarios/cli/strategy_context.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_file.h"

namespace zl::cli {
namespace {

struct ShowOptions {
  std::string name;
  std::string format = "table";
  std::int64_t sequence_length = 0;
  StrategyContext context;
};

void print_object(const Json& object, const std::string& format_text) {
  const Format format = parse_format(format_text);
  Table table = leaves(object);
  if (format != Format::csv) name_units(table);
  print(format == Format::json ? pretty(object) : fitted_text(std::move(table), format));
}

int model(const ShowOptions& options) {
  print_object(show_model(load_model(options.name), options.sequence_length), options.format);
  return 0;
}

// Null where the devices are no faster in the type than in fp32: V100 has no bf16.
Json tensor_peak(const sim::ClusterSpec& cluster, DType dtype, double count) {
  if (!cluster.compute_is_host && !sim::has_tensor_peak(cluster.device, dtype)) return {};
  return cluster.device.rate(dtype).peak * count;
}

int cluster(const ShowOptions& options) {
  const sim::ClusterSpec spec = load_cluster(options.name);
  Json object = parse_json(sim::cluster_json(spec), options.name);
  const bool table = parse_format(options.format) != Format::json;
  if (table) object.erase("calibration");  // hundreds of coefficients
  const auto count = static_cast<double>(spec.shared_cores > 0 ? 1 : spec.devices);
  const double memory = std::min(static_cast<double>(spec.device.memory) * count, 0x1p62);
  object["derived"] = {{"nodes", (spec.devices + spec.node_devices - 1) / spec.node_devices},
                       {"calibrated", spec.calibration.has_value()},
                       {"memory_bytes", static_cast<std::int64_t>(memory)},
                       {"memory_bytes_per_second", spec.device.memory_bandwidth * count},
                       {"peak_flops",
                        {{"fp32", spec.device.rate(DType::f32).peak * count},
                         {"bf16", tensor_peak(spec, DType::bf16, count)},
                         {"fp16", tensor_peak(spec, DType::f16, count)}}}};
  print_object(object, options.format);
  return 0;
}

int software(const ShowOptions& options) {
  if (options.name.empty()) {
    print(fitted_text(list_software(), parse_format(options.format)));
    return 0;
  }
  load_software(options.name);  // says what is wrong with it
  print_object(software_json(options.name), options.format);
  return 0;
}

int strategy(const ShowOptions& options) {
  ModelConfig config;
  const ImportedStrategy imported =
      inspect_strategy(options.name, import_context(options.context, config));
  const Format format = parse_format(options.format);
  if (format == Format::json) {
    print(pretty(show_strategy(imported, imported.ranks)));
  } else {
    print(fitted_text(effects_table(imported), format));
    say_problems(imported);
  }
  if (!imported.rejections.empty()) {
    throw Error(ErrorCode::invalid, join(imported.rejections, "\n"));
  }
  return 0;
}

int scenario(const ShowOptions& options) {
  const Scenario loaded = load_scenario(options.name);
  const Format format = parse_format(options.format);
  if (format == Format::json) {
    print(canonical_json(loaded, 2) + "\n");
    return 0;
  }
  Json object = Json::parse(canonical_json(loaded));
  Json strategies = Json::array();
  for (const ImportedStrategy& each : loaded.strategies) {
    strategies.push_back({{"name", each.strategy.name},
                          {"precision", name_of(each.strategy.precision.compute_dtype)},
                          {"micro_batch", each.strategy.micro_batch},
                          {"gradient_accumulation", each.strategy.gradient_accumulation}});
  }
  object["strategies"] = strategies;
  object["hash"] = content_hash(loaded);
  print(fitted_text(leaves(object), format));
  return 0;
}

using Show = int (*)(const ShowOptions&);

CLI::App& add_one(CLI::App& show, Action& action, const char* name, const char* what, Show run,
                  const std::shared_ptr<ShowOptions>& options, bool needs_name = true) {
  CLI::App* sub = show.add_subcommand(name, what);
  sub->add_option("name", options->name, "Name in the catalogue, or a file")->required(needs_name);
  add_format(*sub, options->format, "table, wide (whole), md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
  return *sub;
}

void add_list(CLI::App& show, Action& action, const char* name, const char* what, Table (*list)()) {
  CLI::App* sub = show.add_subcommand(name, what);
  const auto format = std::make_shared<std::string>("table");
  add_format(*sub, *format, "table, wide (every column), md, csv or json");
  add_verbosity(*sub);
  sub->callback([format, list, &action] {
    action = [format, list] {
      const Format parsed = parse_format(*format);
      print(fitted_text(list(), parsed));
      return 0;
    };
  });
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  CLI::App* show =
      app.add_subcommand("show", "Every derived number of one thing, or what there is");
  const auto options = [] { return std::make_shared<ShowOptions>(); };
  const auto for_model = options();
  add_one(*show, action, "model", "Sizes, parameters, FLOPs and bytes of a model", model, for_model)
      .add_option("--sequence-length", for_model->sequence_length, "Tokens per sequence");
  add_one(*show, action, "cluster", "Devices, links and rates of a cluster", cluster, options());
  add_one(*show, action, "software",
          "What a software does on a GPU; without a name, those whose speed can be predicted",
          software, options(), false);
  const auto for_strategy = options();
  CLI::App& strategies =
      add_one(*show, action, "strategy",
              "What becomes of every key of a strategy or DeepSpeed file", strategy, for_strategy);
  add_strategy_context(strategies, for_strategy->context);
  add_one(*show, action, "scenario", "A scenario with every value spelled out", scenario,
          options());
  add_list(*show, action, "models", "The models of the catalogue", list_models);
  add_list(*show, action, "clusters", "The clusters of the catalogue", list_clusters);
  add_list(*show, action, "strategies", "The strategies of the catalogue", list_strategies);
  add_list(*show, action, "studies", "The studies of the catalogue", list_studies);
}

}  // namespace zl::cli
