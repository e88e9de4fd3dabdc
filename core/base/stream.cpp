#include "core/base/stream.h"

namespace zl {

const char* name_of(StreamId stream) {
  constexpr const char* kNames[kStreams] = {"compute", "communication", "copy_in", "copy_out",
                                            "host",    "file_in",       "file_out"};
  return kNames[static_cast<std::size_t>(stream)];
}

}  // namespace zl
