// Collectives and messages as calls of NCCL.
// Ownership: nothing. Threads: callers hold the communicator.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "backends/cuda/kernel/stream.h"
#include "backends/cuda/nccl_library.h"
#include "core/threads/thread_group.h"
#include "core/threads/watchdog.h"

namespace zl::cuda {

// Error{failed} that begins with the call's name; also for a call that is in progress.
void check(ncclResult_t status, const std::string& call);
// As above, for calls that a non-blocking communicator may take over without an answer.
void check_started(ncclResult_t status, const std::string& call);

// Enqueues on the stream what NCCL starts at once.
void call_nccl(ncclComm_t communicator, int ranks, const Call& call, Stream stream);
void call_nccl(ncclComm_t communicator, std::span<const Message> messages, Stream stream);

// Watches a call that NCCL promises to return from: when it has not, a second after the time-out,
// the process says so and ends.
[[nodiscard]] WatchedCall watch_call(const std::string& call, std::chrono::milliseconds timeout);

}  // namespace zl::cuda
