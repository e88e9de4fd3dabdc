#include "scenarios/files/catalog.h"

#include <algorithm>
#include <array>
#include <cctype>

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

std::string_view behind_alias(std::string_view folder, std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.folder == folder && alias.name == name) return alias.target;
  }
  return name;
}

const CatalogEntry* find(std::string_view folder, std::string_view name) {
  const std::string_view target = behind_alias(folder, name);
  for (const CatalogEntry& entry : catalog_entries()) {
    if (entry.folder == folder && entry.name == target) return &entry;
  }
  return nullptr;
}

// Small letters and digits.
std::string squeezed(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte)) text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

std::string singular(std::string_view folder) {
  if (folder == "strategies") return "strategy";
  if (folder == "studies") return "study";
  if (folder == "software") return "software";
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
  if (const CatalogEntry* entry = find(folder, name)) return std::string(entry->name);
  std::vector<std::string> alike;
  for (const std::string& each : catalog_names(folder)) {
    if (squeezed(each) == squeezed(name)) alike.push_back(each);
  }
  return alike.size() == 1 ? alike[0] : std::string(name);
}

std::string canonical_cluster(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "local" || lower == "local-cuda") return lower;
  const std::size_t digits = lower.find_first_not_of("0123456789");
  const bool counted = digits != std::string::npos && digits > 0 && lower[digits] == 'x';
  const std::size_t begin = counted ? digits + 1 : 0;
  const std::string gpu = catalog_canonical_name("clusters", name.substr(begin));
  return catalog_has("clusters", gpu) ? lower.substr(0, begin) + gpu : name;
}

bool catalog_has(std::string_view folder, std::string_view name) {
  return find(folder, name) != nullptr;
}

std::string_view catalog_text(std::string_view folder, std::string_view name) {
  if (const CatalogEntry* entry = find(folder, catalog_canonical_name(folder, name))) {
    return entry->text;
  }
  const std::vector<std::string> names = catalog_names(folder);
  std::string message = singular(folder) + ": \"" + shortened(name) + "\" ";
  message += "is neither in the catalogue nor a file";
  if (!names.empty()) message += "; the nearest name is \"" + nearest(name, names) + "\"";
  message += ". Known: " + join(names, ", ");
  throw Error(ErrorCode::invalid, message);
}

}  // namespace zl
