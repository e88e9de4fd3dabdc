#include "scenarios/files/strategy_file.h"

#include "core/base/files.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/file_kind.h"

namespace zl {

StrategyText read_strategy(const std::string& name_or_path) {
  if (!catalog_has("strategies", name_or_path) && is_file(name_or_path)) {
    StrategyText file{read_file(name_or_path), name_or_path};
    require_strategy(file.text, name_or_path);
    return file;
  }
  return {std::string(catalog_text("strategies", name_or_path)),
          catalog_canonical_name("strategies", name_or_path)};
}

ImportedStrategy load_strategy(const std::string& name_or_path, const ImportContext& context) {
  const StrategyText file = read_strategy(name_or_path);
  return import_deepspeed(file.text, file.source, context);
}

ImportedStrategy inspect_strategy(const std::string& name_or_path, const ImportContext& context) {
  const StrategyText file = read_strategy(name_or_path);
  return inspect_deepspeed(file.text, file.source, context);
}

}  // namespace zl
