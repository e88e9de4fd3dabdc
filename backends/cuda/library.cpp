#include "backends/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/base/error.h"

namespace zl::cuda {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void append_matches(const std::string& pattern, std::vector<std::string>& folders) {
  glob_t matches{};
  if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &matches) == 0) {
    folders.insert(folders.end(), matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = environment(variable);
    if (!home.empty()) append_matches(home + "/lib64", folders);
  }
  append_matches("/usr/local/cuda/lib64", folders);
  append_matches("/usr/local/cuda-*/lib64", folders);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string home = environment(variable);
    if (!home.empty()) {
      append_matches(home + "/lib/python3*/site-packages/nvidia/*/lib", folders);
    }
  }
  std::istringstream paths(environment("LD_LIBRARY_PATH"));
  for (std::string path; std::getline(paths, path, ':');) {
    if (!path.empty()) append_matches(path + "/nvidia/*/lib", folders);
  }
  return folders;
}

SharedLibrary::SharedLibrary(const std::string& what, const std::string& file,
                             const std::string& fix)
    : what_(what), path_(file) {
  const auto open = [this](const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) path_ = path;
    return handle_ != nullptr;
  };
  if (open(file)) return;
  std::string why = dlerror(), tried = "the loader's places";
  for (const std::string& folder : library_folders()) {
    tried += ", " + folder;
    const std::string path = folder + "/" + file;
    if (!std::filesystem::exists(path)) continue;
    if (open(path)) return;
    why = dlerror();
  }
  throw Error(ErrorCode::unavailable, what + ": " + file +
                                          " was not found or cannot be opened in " + tried + " (" +
                                          why + "); " + fix);
}

void* SharedLibrary::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address == nullptr) {
    throw Error(ErrorCode::unavailable, what_ + ": " + path_ + " has no function " + name +
                                            "; it is older than what this program needs, "
                                            "install a newer one");
  }
  return address;
}

}  // namespace zl::cuda
