#include "scenarios/files/catalog.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/files/catalog_entry.h"

namespace zl {
namespace {

struct Alias {
  std::string_view folder, name, target;
};
constexpr std::array kAliases = {
    Alias{"strategies", "ddp", "zero-0"},
    Alias{"models", "llama3-405b", "llama3.1-405b"},
};

const CatalogEntry* find(std::string_view folder, std::string_view name) {
  const std::string target = catalog_canonical_name(folder, name);
  for (const CatalogEntry& entry : catalog_entries()) {
    if (entry.folder == folder && entry.name == target) return &entry;
  }
  return nullptr;
}

std::string singular(std::string_view folder) {
  if (folder == "strategies") return "strategy";
  if (folder == "studies") return "study";
  return std::string(folder.substr(0, folder.size() - 1));
}

}  // namespace

std::vector<std::string> catalog_names(std::string_view folder) {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog_entries()) {
    if (entry.folder == folder) names.emplace_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string catalog_canonical_name(std::string_view folder, std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.folder == folder && alias.name == name) return std::string(alias.target);
  }
  return std::string(name);
}

bool catalog_has(std::string_view folder, std::string_view name) {
  return find(folder, name) != nullptr;
}

std::string_view catalog_text(std::string_view folder, std::string_view name) {
  if (const CatalogEntry* entry = find(folder, name)) return entry->text;
  const std::vector<std::string> names = catalog_names(folder);
  std::string message = singular(folder) + ": \"" + shortened(name) + "\" ";
  message += "is neither in the catalogue nor a file";
  if (!names.empty()) message += "; the nearest name is \"" + nearest(name, names) + "\"";
  message += ". Known: " + join(names, ", ");
  throw Error(ErrorCode::invalid, message);
}

}  // namespace zl
