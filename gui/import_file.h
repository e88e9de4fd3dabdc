// What a file that was dropped or opened is, and the scenario that comes of it.
// Ownership: values. Threads: pure functions that read files.
#pragma once

#include <optional>
#include <string>

#include "results/format.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/planner/document.h"

namespace zl::gui {

struct ImportedFile {
  enum class Kind : std::uint8_t { scenario, model, strategy, database, data };
  Kind kind = Kind::scenario;
  std::optional<Document> document;  // none: a database, or a file that was refused
  std::string message;               // what was done, or why nothing was
  Table report;                      // of a strategy: what became of each key
};

// A scenario replaces the document; a DeepSpeed file joins its strategies; a model file or Hugging
// Face config.json becomes its model, as does a folder with one; a text what it trains on. Throws
// Error for what cannot be read or is none of them.
ImportedFile import_file(const std::string& path, const Document& current);

// key, given, effective, status, why: every key of a strategy, unknown ones included.
Table effects_table(const ImportedStrategy& strategy);

}  // namespace zl::gui
