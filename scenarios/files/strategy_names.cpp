#include "scenarios/files/strategy_names.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/text.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

fs::path located(const std::string& path) {
  std::error_code ignored;
  const fs::path canonical = fs::weakly_canonical(path, ignored);
  return canonical.empty() ? fs::path(path) : canonical;
}

// "x (a-b)" of .../a/b/x.json and 2 folders.
std::string name_with_folders(const fs::path& path, std::size_t folders) {
  std::string text;
  fs::path parent = path.parent_path();
  for (std::size_t i = 0; i < folders && parent.has_filename(); ++i) {
    text = parent.filename().string() + (i == 0 ? "" : "-" + text);
    parent = parent.parent_path();
  }
  const std::string name = name_of_file(path.string());
  return text.empty() ? name : name + " (" + text + ")";
}

}  // namespace

std::vector<std::string> names_by_path(std::span<const std::string> paths) {
  constexpr std::size_t kMostFolders = 32;
  for (std::size_t folders = 1; folders <= kMostFolders; ++folders) {
    std::vector<std::string> names;
    for (const std::string& path : paths)
      names.push_back(name_with_folders(located(path), folders));
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return names;
  }
  return {};
}

std::vector<std::string> with_strategy_file(std::vector<std::string> strategies,
                                            const std::string& path) {
  const bool is_there =
      std::any_of(strategies.begin(), strategies.end(), [&path](const std::string& each) {
        return !each.starts_with('{') && located(each) == located(path);
      });
  if (!is_there) strategies.push_back(path);
  return strategies;
}

}  // namespace zl
