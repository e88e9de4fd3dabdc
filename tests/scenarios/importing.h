// Short DeepSpeed files for tests of the import, and what it said of one key.
// Ownership: values; an effect belongs to its import. Threads: pure functions.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "scenarios/deepspeed/import.h"
#include "tests/scenarios/message.h"

namespace zl {

inline ImportContext four_ranks() { return {4}; }

inline ImportedStrategy import_text(const std::string& text,
                                    const ImportContext& context = four_ranks()) {
  return import_deepspeed(text, "test.json", context);
}

inline std::string rejection(const std::string& text, const ImportContext& context = four_ranks()) {
  return message_of([&] { import_text(text, context); });
}

// `body` beside a valid batch.
inline std::string with(const std::string& body) {
  return "{\"train_micro_batch_size_per_gpu\": 1, " + body + "}";
}

inline const Effect& effect(const ImportedStrategy& imported, const std::string& key) {
  const auto found = std::find_if(imported.effects.begin(), imported.effects.end(),
                                  [&key](const Effect& e) { return e.key == key; });
  if (found == imported.effects.end()) throw std::runtime_error("no effect for " + key);
  return *found;
}

}  // namespace zl
