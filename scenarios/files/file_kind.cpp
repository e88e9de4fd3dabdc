#include "scenarios/files/file_kind.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/keys.h"

namespace zl {
namespace {

bool has_any(const Json& object, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&object](const char* key) { return object.contains(key); });
}

}  // namespace

FileKind file_kind(const Json& file) {
  if (!file.is_object() || file.empty()) return FileKind::unknown;
  if (has_any(file, {"model", "strategies"})) return FileKind::scenario;
  if (has_any(file, {"model_type", "architectures", "hidden", "hidden_size", "n_embd", "family"})) {
    return FileKind::model;
  }
  for (const auto& item : file.items()) {
    if (!item.key().starts_with("x-") && !is_known_path(item.key())) return FileKind::unknown;
  }
  return FileKind::strategy;
}

}  // namespace zl
