// The streams of a rank and the events that order them.
// Ownership: values. Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zl {

// Streams run in order; different streams overlap unless ordered by record and wait. `host` runs
// ops on the host's processors, over host memory; the file streams run storage transfers.
enum class StreamId : std::uint8_t {
  compute,
  communication,
  copy_in,   // host to device
  copy_out,  // device to host
  host,
  file_in,
  file_out
};
inline constexpr std::size_t kStreams = 7;
inline constexpr std::size_t kDeviceStreams = 4;  // the first ones; the others are the host's
const char* name_of(StreamId stream);

using EventId = std::int64_t;

}  // namespace zl
