#include "core/trace/event.h"

namespace zl {

const char* name_of(Phase phase) {
  constexpr const char* kNames[] = {"init",   "forward",   "backward", "recompute",
                                    "reduce", "optimizer", "gather",   "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

}  // namespace zl
