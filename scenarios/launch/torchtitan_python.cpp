#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/launch/own_keys.h"
#include "scenarios/launch/torchtitan.h"
#include "scenarios/launch/torchtitan_terms.h"

namespace zl {
namespace {

std::string python_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return to_text(value);
}

const Json& setting(const std::vector<TorchtitanSetting>& settings, const char* key) {
  return std::ranges::find(settings, key, &TorchtitanSetting::key)->value;
}

std::string optimizer_lines(const std::vector<TorchtitanSetting>& settings) {
  const auto text = [&](const char* key) { return to_text(setting(settings, key)); };
  return "    config.optimizer = default_adamw(\n        lr=" + text("lr") + ",\n        betas=(" +
         text("beta1") + ", " + text("beta2") + "),\n        eps=" + text("eps") +
         ",\n        weight_decay=" + text("weight_decay") + ",\n    )\n";
}

std::string rates_line(const std::vector<TorchtitanSetting>& settings) {
  std::string text;
  for (const TorchtitanSetting& each : settings) {
    if (each.section != "lr_scheduler") continue;
    text += (text.empty() ? "" : ", ") + each.key + "=" + python_value(each.value);
  }
  return "    config.lr_scheduler = LRSchedulersContainer.Config(" + text + ")\n";
}

// Its SelectiveAC is what selective_ac_option = "op" was before.
std::string recompute_value(const std::string& mode) {
  if (mode == "none") return "None";
  return mode == "full" ? "FullAC.Config()" : "SelectiveAC.Config()";
}

std::string function_text(const std::vector<TorchtitanSetting>& settings,
                          const TorchtitanModel& model, const LaunchFacts& facts) {
  std::string text = "def plan():\n    config = " + std::string(model.function) + "()\n";
  for (const TorchtitanSetting& each : settings) {
    const bool is_plain = each.section == "training" || each.section == "parallelism";
    if (!is_plain) continue;
    text += "    config." + each.section + "." + each.key + " = " + python_value(each.value) + "\n";
  }
  // Graphs are captured without a pipeline only.
  if (std::ranges::find(settings, "pipeline_parallel_degree", &TorchtitanSetting::key) !=
      settings.end()) {
    text += "    config.training.disable_cuda_graphs = True\n";
  }
  text += "    config.activation_checkpoint = " +
          recompute_value(setting(settings, "mode").get<std::string>()) + "\n";
  text += optimizer_lines(settings) + rates_line(settings);
  return text + "    config.compile.enable = " + (facts.compiles ? "True" : "False") +
         "\n    return config\n";
}

}  // namespace

LaunchFile write_torchtitan_python(const Strategy& strategy, const LaunchFacts& facts) {
  Obstacles obstacles("torchtitan-python");
  const TorchtitanModel* model = torchtitan_model(facts.model.name);
  if (model == nullptr || model->function.empty()) {
    obstacles.add("model " + facts.model.name,
                  "torchtitan 0.3 has configurations of llama3-8b, llama3-70b, llama3.1-405b and "
                  "qwen3-0.6b");
  }
  if (strategy.optimizer.kind == OptimizerKind::adam) {
    obstacles.add("Adam", "its default_adamw is AdamW");
  }
  const auto settings = torchtitan_settings(strategy, facts, true, obstacles);
  obstacles.throw_if_any();
  torchtitan_own_keys(settings, strategy, facts, obstacles);
  obstacles.throw_if_any();
  LaunchFile file;
  const std::string function(model->function);
  file.text = "# torchtitan 0.3: " + in_comment(strategy.name + ", " + facts.model.name) + " on " +
              std::to_string(facts.ranks) +
              " GPUs.\n# Save as zerolab_plan.py where Python finds it, then: torchrun "
              "--nproc-per-node " +
              std::to_string(std::min(facts.ranks, facts.node_devices)) + " --nnodes " +
              std::to_string(facts.nodes()) +
              "\n#   -m torchtitan.train --module zerolab_plan --config plan\n"
              "# Data, tokenizer and steps are those of " +
              function +
              ".\n"
              "from torchtitan.components.optimizer import default_adamw, LRSchedulersContainer\n"
              "from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC\n"
              "from torchtitan.models." +
              std::string(model->module) + ".config_registry import " + function + "\n\n\n" +
              function_text(settings, *model, facts);
  return file;
}

}  // namespace zl
