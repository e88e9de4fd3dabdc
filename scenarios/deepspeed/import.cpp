#include "scenarios/deepspeed/import.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "scenarios/deepspeed/builder.h"

namespace zl {

const char* name_of(EffectStatus status) {
  switch (status) {
    case EffectStatus::honoured:
      return "honoured";
    case EffectStatus::defaulted:
      return "defaulted";
    case EffectStatus::not_implemented:
      return "not_implemented";
    case EffectStatus::rejected:
      return "rejected";
  }
  return "?";
}

ImportedStrategy inspect_deepspeed(std::string_view json_text, std::string_view source_name,
                                   const ImportContext& context) {
  const Json document = parse_json(json_text, source_name);
  if (!document.is_object()) {
    throw Error(ErrorCode::invalid,
                std::string(source_name) + ": a strategy is a JSON object {...}, this is not");
  }
  const std::vector<GivenKey> keys = read_deepspeed_keys(document);
  return DeepSpeedBuilder(keys, context).build(source_name);
}

ImportedStrategy import_deepspeed(std::string_view json_text, std::string_view source_name,
                                  const ImportContext& context) {
  ImportedStrategy imported = inspect_deepspeed(json_text, source_name, context);
  if (!imported.rejections.empty()) {
    throw Error(ErrorCode::invalid,
                join(imported.rejections, "\n") + " (" + std::string(source_name) + ")");
  }
  return imported;
}

void require_runnable(const ImportedStrategy& imported) {
  if (imported.refusals.empty()) return;
  throw Error(ErrorCode::invalid, join(imported.refusals, "\n") + " (" + imported.strategy.name +
                                      "); `zerolab show strategy` lists every key");
}

}  // namespace zl
