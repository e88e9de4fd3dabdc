// Comparing and describing collectives and messages, for the errors about ranks that disagree.
// Ownership: nothing. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "core/threads/thread_group.h"

namespace zl {

// Whether two ranks mean the same collective: kind, op, group, and each tensor's type and counts.
bool same(const Call& a, const Call& b);

// "all_gather of 3 tensors fp32 [128, 64, 7] (group data)"; in a step also ", backward of unit 3,
// step 17 of this run".
std::string describe(const Call& call);

// Two messages that meet.
bool same(const Message& a, const Message& b);

// "fp32 [128]".
std::string describe_tensor(const Message& message);

// "to send fp32 [128] to rank 3"; in a step also where in it, as of a collective.
std::string describe(const Message& message, int peer);

// "2 messages, to send fp32 [128] to rank 3, to receive ...", with the peers' ranks in the group.
std::string describe(std::span<const Message> messages);

// What the two sides of a message's n-th turn on a stream say of its tensor.
struct MessageSides {
  StreamId stream = StreamId::compute;
  std::int64_t number = 0;
  int from = 0, to = 0;
  std::string sent, received;
};
// "message mismatch at #2 from rank 0 to rank 1 on the stream 'compute': rank 0 sends fp32 [5],
// rank 1 receives fp32 [6]".
std::string describe_mismatch(const MessageSides& sides);

// "rank 1 waits at #2 of the stream 'compute' to send fp32 [128] to rank 3".
std::string describe_wait(int rank, std::int64_t number, StreamId stream, const std::string& what);

}  // namespace zl
