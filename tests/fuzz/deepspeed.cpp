// DeepSpeed files: importing what a strategy is written as gives the same strategy.
#include "scenarios/deepspeed/import.h"

#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "scenarios/files/strategy_json.h"
#include "tests/fuzz/fuzz.h"

namespace {

zl::ModelConfig small_model() {
  zl::ModelConfig model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.vocab = 256;
  model.max_sequence = 32;
  model.complete();
  return model;
}

}  // namespace

ZL_FUZZ_TARGET(deepspeed) {
  static const zl::ModelConfig model = small_model();
  zl::set_log_level(zl::LogLevel::quiet);
  const std::string_view text = zl::fuzz::text_of(data, size);
  zl::ImportContext context;
  context.ranks = 1 + static_cast<std::int64_t>(size % 8);
  context.model = &model;
  context.steps = static_cast<std::int64_t>(size % 32);
  zl::fuzz::takes([&] { zl::inspect_deepspeed(text, "input.json", context); });
  zl::ImportedStrategy imported;
  const bool runs = zl::fuzz::takes([&] {
    imported = zl::import_deepspeed(text, "input.json", context);
    zl::require_runnable(imported);
  });
  if (!runs) return 0;
  const std::string written = zl::to_text(zl::strategy_to_json(imported.strategy));
  const bool taken = zl::fuzz::takes([&] {
    const zl::ImportedStrategy again = zl::import_deepspeed(written, "again.json", context);
    const std::string rewritten = zl::to_text(zl::strategy_to_json(again.strategy));
    zl::fuzz::require(rewritten == written, "another strategy:\n" + written + "\n" + rewritten);
  });
  zl::fuzz::require(taken, "what was written is refused: " + written);
  return 0;
}
