#include "results/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::filesystem::path home() {
  if (auto folder = variable("HOME"); folder.is_absolute()) return folder;
  const passwd* user = getpwuid(getuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

std::filesystem::path folder(const char* xdg_variable, const char* below_home) {
  if (auto base = variable(xdg_variable); base.is_absolute()) return base / "zerolab";
  const auto base = home();
  if (!base.is_absolute()) {
    throw Error(ErrorCode::failed,
                std::string("no home folder: set HOME or ") + xdg_variable + " to a full path");
  }
  return base / below_home / "zerolab";
}

}  // namespace

std::filesystem::path config_folder() { return folder("XDG_CONFIG_HOME", ".config"); }
std::filesystem::path data_folder() { return folder("XDG_DATA_HOME", ".local/share"); }
std::filesystem::path cache_folder() { return folder("XDG_CACHE_HOME", ".cache"); }

std::filesystem::path database_path() {
  if (auto path = variable("ZEROLAB_DB"); !path.empty()) return path;
  return data_folder() / "results.db";
}

}  // namespace zl
