#include "core/device/world.h"

#include "core/base/error.h"

namespace zl {

std::vector<std::string> BackendRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

std::unique_ptr<World> BackendRegistry::make(const std::string& name,
                                             const WorldOptions& options) const {
  if (const auto found = factories_.find(name); found != factories_.end()) {
    return found->second(options);
  }
  if (const auto why = missing_.find(name); why != missing_.end()) {
    throw Error(ErrorCode::unavailable, "backend '" + name + "' is not available: " + why->second);
  }
  std::string known;
  for (const auto& [key, factory] : factories_) known += (known.empty() ? "" : ", ") + key;
  throw Error(ErrorCode::usage, "--backend: '" + name + "' is not one of " + known);
}

}  // namespace zl
