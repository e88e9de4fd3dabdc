#include "scenarios/published/published_run.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/median.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/files/catalog.h"

namespace zl {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Rule {
  std::string_view part, name;
};

// What a source ran, by words of its name; the first that fits.
constexpr std::array kSoftware = {Rule{"vTrain", "megatron-deepspeed-2021"},
                                  Rule{"Korthikanti", "megatron-deepspeed-2021"},
                                  Rule{"Narayanan", "megatron-deepspeed-2021"},
                                  Rule{"Zero Bubble", "megatron-deepspeed-2021"},
                                  Rule{"1-bit Adam", "deepspeed-2020"},
                                  Rule{"onebit-adam", "deepspeed-2020"},
                                  Rule{"microsoft/DeepSpeed", "deepspeed-zero3-2022"},
                                  Rule{"SimuMax", "megatron-core"},
                                  Rule{"Megatron-LM", "megatron-core"},
                                  Rule{"torchtitan", "torch-fsdp2"},
                                  Rule{"llm.c", "llm.c"},
                                  Rule{"llm-foundry", "torch-fsdp1-2023"},
                                  Rule{"mosaicml", "torch-fsdp1-2023"},
                                  Rule{"nanoGPT", "torch-ddp"}};

// The catalogue's GPU, by words of a GPU's name; the first that fits.
constexpr std::array kGpus = {Rule{"A100-40", "a100-40"},
                              Rule{"A100-PCIe", ""},
                              Rule{"A100", "a100-80"},
                              Rule{"500W", "h100-500w"},
                              Rule{"Grand Teton", "h100-500w"},
                              Rule{"H100-NVL", "h100-nvl"},
                              Rule{"H100-PCIe", "h100-pcie"},
                              Rule{"H100", "h100"},
                              Rule{"H200", "h200"},
                              Rule{"GB200", "gb200"},
                              Rule{"B200", "b200"},
                              Rule{"V100", "v100"},
                              Rule{"L40S", "l40s"},
                              Rule{"4090", "rtx-4090"},
                              Rule{"MI300X", "mi300x"},
                              Rule{"A10G", "a10g"}};

template <std::size_t count>
std::string first_that_fits(const std::array<Rule, count>& rules, std::string_view text) {
  const auto rule =
      std::ranges::find_if(rules, [&](const Rule& each) { return has(text, each.part); });
  return rule == rules.end() ? "" : std::string(rule->name);
}

std::string software_of(const CsvRow& row) {
  if (!row.at("software").empty()) return row.at("software");
  const std::string software = first_that_fits(kSoftware, row.at("source"));
  if (software == "megatron-core") {
    if (has_option(row, "transformer-impl local")) return "megatron-core-local";
    if (has_option(row, "attention-backend unfused")) return "megatron-core-unfused";
  }
  // Which Megatron had from DeepSpeed.
  if (software == "megatron-deepspeed-2021" && row.at("zero_stage") == "3") {
    return "deepspeed-zero3-2021";
  }
  const bool compiled = has_option(row, "compile") || has(row.at("id"), "compile");
  return software == "torch-fsdp2" && compiled ? "torch-fsdp2-compile" : software;
}

std::string gpu_of(const CsvRow& row) {
  const std::string& gpu = row.at("gpu");
  if (catalog_has("clusters", gpu)) return gpu;
  if (has(gpu, "V100") && has(row.at("inter_node_link"), "Ethernet")) return "v100-ethernet";
  return first_that_fits(kGpus, gpu);
}

double number_at(const CsvRow& row, const char* column, const std::string& source) {
  const std::string& text = row.at(column);
  const double value = real_in(text).value_or(0);
  if (!(value > 0)) {
    throw Error(ErrorCode::invalid, source + ":" + std::to_string(row.line) + ": " + column +
                                        ": \"" + shortened(text) + "\" is no number above 0");
  }
  return value;
}

constexpr std::array kUnits = {"ms",          "s",         "GiB",           "GB",
                               "TFLOP/s/GPU", "tok/s/GPU", "samples/s/GPU", "samples/s"};

void check_unit(const CsvRow& row, const std::string& source) {
  const std::string& unit = row.at("unit");
  if (std::ranges::find(kUnits, unit) != kUnits.end()) return;
  throw Error(ErrorCode::invalid,
              source + ":" + std::to_string(row.line) + ": unit: \"" + shortened(unit) +
                  "\" is not one of " +
                  join(std::vector<std::string>(kUnits.begin(), kUnits.end()), ", "));
}

TimeKind kind_at(const CsvRow& row, const std::string& source) {
  const std::string& text = row.at("kind");
  // vTrain's times of one node, of which every step is an exact sum.
  if (text.empty() && has(row.at("source"), "ground_truth_single")) return TimeKind::composed;
  if (text.empty() || text == name_of(TimeKind::measured)) return TimeKind::measured;
  if (text == name_of(TimeKind::composed)) return TimeKind::composed;
  throw Error(ErrorCode::invalid, source + ":" + std::to_string(row.line) + ": kind: \"" +
                                      shortened(text) +
                                      "\" is neither measured nor composed (of timed operators)");
}

// What a row says of what ran.
std::string configuration(const CsvRow& row) {
  std::string text;
  for (const auto& [column, value] : row.fields) {
    const bool of_one = column == "id" || column == "link" || column == "value" || column == "date";
    if (!of_one) text += column + '=' + value + '\n';
  }
  return text;
}

// The first run of each configuration, with the values of them all.
std::vector<PublishedRun> one_of_each(std::vector<PublishedRun> measurements) {
  std::vector<PublishedRun> runs;
  std::map<std::string, std::size_t> places;
  for (PublishedRun& each : measurements) {
    const auto [place, is_new] = places.try_emplace(configuration(each.row), runs.size());
    const double value = each.value;
    if (is_new) runs.push_back(std::move(each));
    runs[place->second].values.push_back(value);
  }
  for (PublishedRun& run : runs) run.value = median(run.values);
  return runs;
}

std::vector<PublishedRun> runs_of(const std::string& folder) {
  std::vector<PublishedRun> all;
  for (const std::string& name : catalog_names(folder)) {
    for (PublishedRun& run : read_published(catalog_text(folder, name), name + ".csv")) {
      all.push_back(std::move(run));
    }
  }
  return all;
}

}  // namespace

bool has_option(const CsvRow& row, std::string_view option) {
  const auto options = row.fields.find("options");
  if (options == row.fields.end()) return has(row.at("notes"), option);
  const std::string all = ';' + options->second + ';', begin = ';' + std::string(option);
  return has(all, begin + ';') || has(all, begin + ' ');
}

const char* name_of(TimeKind kind) { return kind == TimeKind::measured ? "measured" : "composed"; }

std::vector<PublishedRun> read_published(std::string_view csv, const std::string& source) {
  std::vector<PublishedRun> runs;
  for (CsvRow& row : read_csv(csv, source,
                              {"id", "source", "gpu", "measured_quantity", "value", "unit",
                               "layers", "hidden", "heads", "seq", "n_gpus", "micro_batch"})) {
    check_unit(row, source);
    PublishedRun run{.id = row.at("id"),
                     .source = row.at("source"),
                     .link = row.at("link"),
                     .kind = kind_at(row, source),
                     .software = software_of(row),
                     .gpu = gpu_of(row),
                     .quantity = row.at("measured_quantity"),
                     .unit = row.at("unit"),
                     .value = number_at(row, "value", source),
                     .values = {},
                     .row = {}};
    run.row = std::move(row);
    runs.push_back(std::move(run));
  }
  return one_of_each(std::move(runs));
}

std::vector<PublishedRun> catalog_published() { return runs_of("published"); }

std::vector<PublishedRun> catalog_meshes() {
  std::vector<PublishedRun> all = runs_of("published");
  std::ranges::move(runs_of("meshes"), std::back_inserter(all));
  return all;
}

}  // namespace zl
