#include "core/device/world.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

// Of OMP_NUM_THREADS, where it says so: the first of "4,2", which are nested. 0: it does not.
int threads_by_environment() {
  constexpr std::int64_t kMost = 4096;
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view list = text;
  const auto threads = integer_in(list.substr(0, list.find(',')));
  return threads && *threads > 0 && *threads <= kMost ? static_cast<int>(*threads) : 0;
}

}  // namespace

int threads_per_rank(const WorldOptions& options, int ranks) {
  if (options.threads_per_rank > 0) return options.threads_per_rank;
  if (const int threads = threads_by_environment(); threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks);
}

std::chrono::milliseconds patience(const WorldOptions& options) {
  constexpr std::chrono::hours kForEver{24 * 365 * 100};
  return options.collective_timeout.count() > 0 ? options.collective_timeout : kForEver;
}

std::vector<std::string> BackendRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (entry.why_missing().empty()) names.push_back(name);
  }
  return names;
}

std::map<std::string, std::string> BackendRegistry::missing() const {
  std::map<std::string, std::string> missing;
  for (const auto& [name, entry] : entries_) {
    if (const std::string why = entry.why_missing(); !why.empty()) missing[name] = why;
  }
  return missing;
}

const BackendRegistry::Entry& BackendRegistry::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  std::string known;
  for (const auto& [each, entry] : entries_) known += (known.empty() ? "" : ", ") + each;
  throw Error(ErrorCode::usage, "--backend: '" + name + "' is not one of " + known);
}

std::unique_ptr<World> BackendRegistry::make(const std::string& name,
                                             const WorldOptions& options) const {
  const Entry& entry = find(name);
  if (const std::string why = entry.why_missing(); !why.empty()) {
    throw Error(ErrorCode::unavailable, "backend '" + name + "' is not available: " + why);
  }
  return entry.factory(options);
}

const BackendCapabilities& BackendRegistry::capabilities(const std::string& name) const {
  return find(name).capabilities;
}

}  // namespace zl
