#include "results/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string_view>
#include <thread>

namespace zl {
namespace {

const char* source_commit = "unknown";

// The value of the first "key<spaces><separator> value" line of a file, without quotes.
std::string first_value(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto at = line.find(separator);
    if (at == std::string::npos || line.find_first_not_of(" \t", key.size()) != at) continue;
    const auto first = line.find_first_not_of(" \t\"", at + 1);
    const auto last = line.find_last_not_of(" \t\"");
    if (first != std::string::npos && last >= first) return line.substr(first, last - first + 1);
  }
  return "unknown";
}

}  // namespace

void set_source_commit(const char* commit) { source_commit = commit; }

Environment detect_environment() {
  Environment environment;
  utsname system{};
  if (uname(&system) == 0) {
    environment.host = system.nodename;
    environment.kernel = std::string(system.sysname) + " " + system.release;
  } else {
    environment.host = environment.kernel = "unknown";
  }
  environment.os = first_value("/etc/os-release", "PRETTY_NAME", '=');
  environment.cpu = first_value("/proc/cpuinfo", "model name", ':');
  environment.cores = static_cast<int>(std::thread::hardware_concurrency());
  const long pages = sysconf(_SC_PHYS_PAGES);
  if (pages > 0) environment.memory_bytes = std::int64_t{pages} * sysconf(_SC_PAGE_SIZE);
  environment.compiler = ZL_COMPILER;
  environment.build = ZL_BUILD_TYPE;
  environment.commit = source_commit;
  return environment;
}

}  // namespace zl
