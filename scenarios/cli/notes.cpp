#include "scenarios/cli/notes.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/nearest.h"

namespace zl::cli {
namespace {

bool is_worth_a_line(const Effect& effect) {
  if (effect.why.empty()) return false;
  const bool given = !effect.given.empty() && effect.given != "\"auto\"";
  const bool missing =
      effect.key == "optimizer.type" ||
      (effect.key.ends_with("16.enabled") && effect.effective == "true" && effect.given.empty());
  return given || (missing && effect.status == EffectStatus::defaulted);
}

bool is_in_vain(const Effect& effect) {
  return effect.status == EffectStatus::not_implemented || effect.why.starts_with("no effect");
}

bool is_told_of(const std::vector<std::string>& messages, const std::string& key) {
  return std::any_of(messages.begin(), messages.end(), [&key](const std::string& message) {
    return message.find(key) != std::string::npos;
  });
}

}  // namespace

void say_notes(const ImportedStrategy& imported, const char* where) {
  const std::string name = imported.strategy.name + ": ";
  std::vector<std::string> in_vain;
  for (const Effect& effect : imported.effects) {
    if (!is_worth_a_line(effect)) continue;
    const std::string line = name + effect.key + ": " + effect.why;
    if (!is_in_vain(effect)) {
      log_info(line);
    } else if (!is_told_of(imported.warnings, effect.key) &&
               !is_told_of(imported.refusals, effect.key)) {
      in_vain.push_back(effect.key);
      log_debug(line);
    }
  }
  if (in_vain.empty()) return;
  log_info(name + "no effect here: " + join(in_vain, ", ") + "; " + where);
}

void say_problems(const ImportedStrategy& imported) {
  for (const std::string& warning : imported.warnings) log_warning(warning);
  for (const std::string& refusal : imported.refusals) log_warning(refusal);
}

}  // namespace zl::cli
