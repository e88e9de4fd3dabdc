#include "scenarios/cli/show_lists.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/files/strategy_json.h"

namespace zl::cli {
namespace {

Cell or_none(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

Cell known(double value) { return value > 0 ? Cell(value) : Cell(); }

// Only where the device computes in the type faster than in fp32.
Cell tensor_peak(const sim::DeviceSpec& device, DType dtype) {
  return sim::has_tensor_peak(device, dtype) ? Cell(device.rate(dtype).peak) : Cell();
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// Up to the full stop before a capital: "et al. 2021" is inside.
std::string first_sentence(const std::string& text) {
  std::size_t stop = text.find(". ");
  while (stop != std::string::npos && !(stop + 2 < text.size() && is_capital(text[stop + 2]))) {
    stop = text.find(". ", stop + 1);
  }
  return text.substr(0, stop);
}

// The first sentence of what the file says about itself.
Cell comment_of(const char* folder, const std::string& name) {
  const Json file = parse_json(catalog_text(folder, name), name);
  const auto comment = file.find("x-comment");
  if (comment == file.end() || !comment->is_string()) return {};
  return first_sentence(comment->get<std::string>());
}

// "ampere 10.6 %, hopper 14.0 %": of GPUs that published runs support.
std::string supported_errors(const sim::Software& software) {
  std::string text;
  for (const auto& [generation, error] : software.step_errors) {
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", sim::name_of(generation),
                        100 * error);
  }
  return text;
}

}  // namespace

Table list_models() {
  Table table{{{"model", Align::left},
               {"parameters"},
               {"layers"},
               {"hidden"},
               {"heads"},
               {"vocab"},
               {"max_sequence"},
               {"family", Align::left}},
              {}};
  for (const std::string& name : catalog_names("models")) {
    const ModelConfig m = load_model(name);
    table.rows.push_back(
        {name, m.parameters(), m.layers, m.hidden, m.heads, m.vocab, m.max_sequence, m.family});
  }
  return table;
}

Table list_clusters() {
  Table table{{{"cluster", Align::left},
               {"memory", Align::right, Unit::bytes},
               {"memory bandwidth", Align::right, Unit::byte_rate},
               {"bf16 peak", Align::right, Unit::flop_rate},
               {"in node", Align::left},
               {"between nodes", Align::left},
               {"devices_per_node"},
               {"device", Align::left},
               {"fp16 peak", Align::right, Unit::flop_rate}},
              {}};
  std::vector<std::string> names = catalog_names("clusters");
  names.emplace_back("local");
  for (const std::string& name : names) {
    const sim::ClusterSpec cluster = load_cluster(name);
    const bool local = name == "local";
    table.rows.push_back({name, known(static_cast<double>(cluster.device.memory)),
                          known(cluster.device.memory_bandwidth),
                          tensor_peak(cluster.device, DType::bf16), cluster.intra.name,
                          local ? Cell() : Cell(cluster.inter.name),
                          local ? Cell() : Cell(std::int64_t{cluster.node_devices}),
                          cluster.device.name, tensor_peak(cluster.device, DType::f16)});
  }
  return table;
}

Table list_software() {
  Table table{{{"software", Align::left},
               {"op_seconds", Align::right, Unit::seconds},
               {"gemm", Align::right, Unit::fraction},
               {"memory", Align::right, Unit::fraction},
               {"attention", Align::left},
               {"fitted"},
               {"step_error", Align::right, Unit::fraction},
               {"supported", Align::left}},
              {}};
  for (const std::string& name : catalog_names("software")) {
    const sim::Software s = load_software(name);
    table.rows.push_back({name, s.op_seconds, s.gemm, s.memory,
                          std::string(name_of(s.kernels.attention)),
                          static_cast<std::int64_t>(s.fitted.size()) + (s.fits_reserve ? 1 : 0),
                          s.step_error, supported_errors(s)});
  }
  return table;
}

Table list_strategies() {
  Table table{{{"strategy", Align::left},
               {"zero_stage"},
               {.name = "what", .align = Align::left, .is_prose = true},
               {"recompute", Align::left},
               {"overlap_comm", Align::left},
               {"aliases", Align::left}},
              {}};
  for (const std::string& name : catalog_names("strategies")) {
    const Strategy s = load_strategy(name, {.infer_ranks = true}).strategy;
    const bool ddp = catalog_canonical_name("strategies", "ddp") == name;
    table.rows.push_back({name, std::int64_t{s.zero.stage}, comment_of("strategies", name),
                          recompute_text(s.recompute),
                          std::string(s.zero.overlap_comm ? "yes" : "no"),
                          ddp ? Cell("ddp") : Cell()});
  }
  return table;
}

Table list_studies() {
  Table table{{{"study", Align::left},
               {.name = "what", .align = Align::left, .is_prose = true},
               {"model", Align::left},
               {"cluster", Align::left},
               {"ranks"},
               {"steps"},
               {"strategies", Align::left}},
              {}};
  for (const std::string& name : catalog_names("studies")) {
    const Scenario scenario = load_scenario(name);
    std::vector<std::string> strategies;
    for (const ImportedStrategy& each : scenario.strategies) {
      strategies.push_back(each.strategy.name);
    }
    table.rows.push_back({name, comment_of("studies", name), scenario.model.name, scenario.cluster,
                          scenario.run.ranks, scenario.run.steps, join(strategies, ", ")});
  }
  return table;
}

Table effects_table(const ImportedStrategy& imported) {
  Table table{{{"key", Align::left},
               {"status", Align::left},
               {"effective", Align::left},
               {.name = "why", .align = Align::left, .is_prose = true},
               {"given", Align::left}},
              {}};
  for (const Effect& effect : imported.effects) {
    table.rows.push_back({effect.key, std::string(name_of(effect.status)),
                          or_none(effect.effective), effect.why, or_none(effect.given)});
  }
  return table;
}

}  // namespace zl::cli
