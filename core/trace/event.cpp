#include "core/trace/event.h"

namespace zl {

const char* name_of(Phase phase) {
  constexpr const char* kNames[kPhases] = {
      "init",      "forward", "backward", "recompute",       "reduce",
      "optimizer", "gather",  "other",    "weight_gradient", "recompute_products"};
  return kNames[static_cast<std::size_t>(phase)];
}

const char* name_of(Route route) {
  constexpr const char* kNames[kRoutes] = {"host_to_device", "device_to_host", "file_to_host",
                                           "host_to_file"};
  return kNames[static_cast<std::size_t>(route)];
}

}  // namespace zl
