// What the fuzz targets of strategies share.
// Ownership: values; the context refers to a model that lives as long as the process. Threads: one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/log.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/files/strategy_json.h"
#include "tests/fuzz/fuzz.h"

namespace zl::fuzz {

inline ModelConfig small_model() {
  ModelConfig model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.vocab = 256;
  model.max_sequence = 32;
  model.complete();
  return model;
}

inline ImportContext import_context(std::size_t size) {
  static const ModelConfig model = small_model();
  ImportContext context;
  context.ranks = 1 + static_cast<std::int64_t>(size % 8);
  context.model = &model;
  context.steps = static_cast<std::int64_t>(size % 32);
  return context;
}

// Importing what an imported strategy is written as gives the same strategy.
template <class Import>
void check_import(const ImportContext& context, const Import& import) {
  set_log_level(LogLevel::quiet);
  ImportedStrategy imported;
  const bool runs = takes([&] {
    imported = import();
    require_runnable(imported);
  });
  if (!runs) return;
  const std::string written = to_text(strategy_to_json(imported.strategy));
  ImportContext same = context;
  if (context.infer_ranks) same.ranks = imported.ranks;
  const bool taken = takes([&] {
    const ImportedStrategy again = import_deepspeed(written, "again.json", same);
    const std::string rewritten = to_text(strategy_to_json(again.strategy));
    require(rewritten == written, "another strategy:\n" + written + "\n" + rewritten);
  });
  require(taken, "what was written is refused: " + written);
}

}  // namespace zl::fuzz
