#include "core/base/collective_kind.h"

namespace zl {

const char* name_of(CollectiveKind kind) {
  constexpr const char* kNames[kCollectiveKinds] = {"all_reduce", "reduce_scatter", "all_gather",
                                                    "broadcast", "all_to_all"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(Axis axis) {
  constexpr const char* kNames[kAxes] = {"data",     "tensor", "context", "shard",    "replicate",
                                         "pipeline", "expert", "world",   "secondary"};
  return kNames[static_cast<std::size_t>(axis)];
}

const char* name_of(Purpose purpose) { return purpose == Purpose::data ? "data" : "control"; }

}  // namespace zl
