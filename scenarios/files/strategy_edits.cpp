#include "scenarios/files/strategy_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

// The object under a key, made where there is none; what else stands there is left to the import.
Json* object_at(Json& parent, const char* key) {
  Json& value = parent[key];
  if (value.is_null()) value = Json::object();
  return value.is_object() ? &value : nullptr;
}

// A schedule that names a peak of its own would win over the optimizer's.
void edit_lr(double lr, Json& strategy) {
  Json* optimizer = object_at(strategy, "optimizer");
  if (optimizer == nullptr) return;
  if (!optimizer->contains("type")) (*optimizer)["type"] = "AdamW";
  if (Json* params = object_at(*optimizer, "params")) (*params)["lr"] = lr;
  if (!strategy.contains("scheduler")) return;
  Json* scheduler = object_at(strategy, "scheduler");
  Json* params = scheduler == nullptr ? nullptr : object_at(*scheduler, "params");
  for (const char* peak : {"warmup_max_lr", "cycle_max_lr"}) {
    if (params != nullptr && params->contains(peak)) (*params)[peak] = lr;
  }
}

// Without a schedule: linear to the optimizer's learning rate, which then stays.
void edit_warmup(std::int64_t steps, Json& strategy) {
  const bool scheduled = strategy.contains("scheduler") && !strategy["scheduler"].is_null();
  Json* scheduler = object_at(strategy, "scheduler");
  if (scheduler == nullptr) return;
  const Json given = scheduler->value("type", Json());
  const std::string type =
      !scheduled ? "WarmupLR" : (given.is_string() ? given.get<std::string>() : "");
  if (!type.starts_with("Warmup")) {
    throw Error(ErrorCode::invalid, "warmup-steps: the schedule " + shortened(type) +
                                        " has no warm-up; remove one of the two");
  }
  (*scheduler)["type"] = type;
  Json* params = object_at(*scheduler, "params");
  if (params == nullptr) return;
  (*params)["warmup_num_steps"] = steps;
  if (!scheduled) params->update({{"warmup_type", "linear"}, {"warmup_max_lr", "auto"}});
}

void edit_offload(const std::string& to, Json& strategy) {
  Json* zero = object_at(strategy, "zero_optimization");
  if (zero == nullptr) return;
  for (const char* key :
       {"offload_optimizer", "offload_param", "cpu_offload", "cpu_offload_params"}) {
    zero->erase(key);
  }
  if (to == "none") return;
  Json tier = {{"device", to}, {"pin_memory", true}};
  if (to == "nvme") tier["nvme_path"] = "/tmp";  // as the catalogue's; --nvme-path names another
  (*zero)["offload_optimizer"] = tier;
  if (zero->value("stage", Json()) == 3) (*zero)["offload_param"] = tier;
}

// A list where the text is one; else, for the import to judge, the text.
Json layers_json(const std::string& text) {
  const Json list = Json::parse("[" + text + "]", nullptr, false);
  return list.is_discarded() ? Json(text) : list;
}

std::string tag_of(std::string text) {
  const auto breaks = [](char c) { return c == ':' || c == ','; };
  std::replace_if(text.begin(), text.end(), breaks, '-');
  return text;
}

// Returns what the strategy is called after it.
std::string edit_parallel(const StrategyEdits& edits, Json& own) {
  Json* parallel = object_at(own, "parallel");
  if (parallel == nullptr) return "";
  std::string tags;
  if (edits.tensor) {
    (*parallel)["tensor"] = *edits.tensor;
    tags += fmt::format("+tp{}", *edits.tensor);
  }
  if (edits.sequence_parallel) {
    (*parallel)["sequence_parallel"] = *edits.sequence_parallel;
    tags += *edits.sequence_parallel ? "+sp" : "+no-sp";
  }
  if (edits.tensor_overlap) {
    (*parallel)["tensor_overlap"] = *edits.tensor_overlap;
    tags += *edits.tensor_overlap ? "+tp-overlap" : "+no-tp-overlap";
  }
  if (edits.replicate) {
    (*parallel)["replicate"] = *edits.replicate;
    tags += fmt::format("+r{}", *edits.replicate);
  }
  if (edits.pipeline) {
    (*parallel)["pipeline"] = *edits.pipeline;
    tags += fmt::format("+pp{}", *edits.pipeline);
  }
  if (edits.virtual_stages) {
    (*parallel)["virtual_stages"] = *edits.virtual_stages;
    tags += fmt::format("+v{}", *edits.virtual_stages);
    const bool named = edits.schedule || parallel->contains("schedule");
    if (*edits.virtual_stages > 1 && !named) (*parallel)["schedule"] = "interleaved";
  }
  if (edits.schedule) {
    (*parallel)["schedule"] = *edits.schedule;
    tags += "+" + *edits.schedule;
  }
  if (!edits.layers_per_stage.empty()) {
    (*parallel)["layers_per_stage"] = layers_json(edits.layers_per_stage);
    tags += "+layers-" + tag_of(edits.layers_per_stage);
  }
  return tags;
}

// DeepSpeed's words for what is said anew.
void forget_tensor_parallel(const StrategyEdits& edits, Json& strategy) {
  const auto section = strategy.find("tensor_parallel");
  if (section == strategy.end() || !section->is_object()) return;
  if (edits.tensor) section->erase("autotp_size");
  if (edits.tensor_overlap) section->erase("tp_overlap_comm");
}

}  // namespace

std::string edited_strategy(const std::string& text, const std::string& source,
                            const StrategyEdits& edits) {
  if (!edits.any()) return text;
  Json strategy = parse_json(text, source);
  if (!strategy.is_object()) return text;  // the import says so
  Json* own = object_at(strategy, "x-zerolab");
  if (own == nullptr) return text;
  const Json given = own->value("name", Json());
  std::string name = given.is_string() ? given.get<std::string>() : name_of_file(source);
  if (edits.recompute) {
    (*own)["recompute"] = *edits.recompute;
    name += "+recompute-" + tag_of(*edits.recompute);
  }
  if (edits.offload) {
    const std::string& to = *edits.offload;
    if (to != "none" && to != "cpu" && to != "nvme") {
      throw Error(ErrorCode::invalid,
                  "offload: \"" + shortened(to) + "\" is not one of none, cpu, nvme");
    }
    edit_offload(to, strategy);
    name += "+offload-" + to;
  }
  if (edits.lr) {
    edit_lr(*edits.lr, strategy);
    name += fmt::format("+lr-{:g}", *edits.lr);
  }
  if (edits.lr_growth) {
    strategy["scheduler"] = {{"type", "ExponentialLR"}, {"params", {{"gamma", *edits.lr_growth}}}};
    name += "+growing";
  }
  if (edits.warmup) {
    edit_warmup(*edits.warmup, strategy);
    name += fmt::format("+warmup-{}", *edits.warmup);
  }
  if (edits.cuts()) name += edit_parallel(edits, *own);
  strategy["x-zerolab"]["name"] = name;
  forget_tensor_parallel(edits, strategy);
  return to_text(strategy);
}

}  // namespace zl
