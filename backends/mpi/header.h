// What the ranks tell each other of a call before its data moves, and the channels for it.
// Ownership: values. Threads: values.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "core/threads/call_text.h"

namespace zl::mpi {

// Channels of a group's messages (messages.h): of each stream one for collectives, and for messages
// one each for the senders' headers, the receivers' and the data.
inline int collective_channel(StreamId stream) { return 4 * static_cast<int>(stream); }
inline int message_channel(StreamId stream, bool of_sender) {
  return 4 * static_cast<int>(stream) + (of_sender ? 1 : 2);
}
inline int data_channel(StreamId stream) { return 4 * static_cast<int>(stream) + 3; }

// All that same() compares, and words for an error. Travels as bytes.
struct Header {
  std::uint64_t digest = 14695981039346656037ULL;  // FNV-1a
  char text[248] = {};

  Header() = default;
  explicit Header(const Call& call) {
    add(static_cast<std::int64_t>(call.kind));
    add(static_cast<std::int64_t>(call.op));
    add(static_cast<std::int64_t>(call.purpose));
    add(call.splits ? 1 : 0);
    for (const Segment& segment : call.segments) {
      add(static_cast<std::int64_t>(segment.source.dtype));
      add(segment.source.count());
      add(segment.destination.count());
    }
    std::strncpy(text, describe(call).c_str(), sizeof text - 1);
  }
  explicit Header(const Message& message) {
    add(static_cast<std::int64_t>(message.tensor.dtype));
    add(message.tensor.count());
    std::strncpy(text, describe_tensor(message).c_str(), sizeof text - 1);
  }

 private:
  void add(std::int64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      digest = (digest ^ (static_cast<std::uint64_t>(value) >> (8 * byte) & 0xFF)) * 1099511628211U;
    }
  }
};

}  // namespace zl::mpi
