#include "backends/cpu/thread_communicator.h"

#include <cstring>
#include <vector>

#include "backends/cpu/move_data.h"
#include "backends/cpu/slow_link.h"

namespace zl::cpu {

// What is enqueued may run when this communicator is gone: it shares the group.
void ThreadCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  Call call = call_of(collective);
  const std::int64_t bytes = wire_bytes(collective, size());
  device_.enqueue(
      stream,
      [group = group_, moved = moved_, rank = rank_, bandwidth = link_bandwidth_, stream, bytes,
       call = std::move(call), timing](int threads) {
        group->run(rank, stream, call, [&](const ThreadGroup::Calls& calls) {
          if (timing != nullptr) timing->met_ns = steady_nanoseconds();
          carry(bytes, bandwidth,
                [&] { moved->add(call.purpose, move_data(calls, rank, threads)); });
        });
      },
      timing);
}

void ThreadCommunicator::exchange(StreamId stream, std::span<const Message> messages,
                                  Timing* timing) {
  check_messages(messages, rank_, size());
  device_.enqueue(
      stream,
      [group = group_, moved = moved_, rank = rank_, bandwidth = link_bandwidth_, stream,
       own = std::vector<Message>(messages.begin(), messages.end())] {
        group->exchange(rank, stream, own, [&](const Message& send, const Message& receive) {
          const std::int64_t bytes = send.tensor.bytes();
          carry(bytes, bandwidth, [&] {
            if (bytes == 0) return;
            std::memcpy(receive.tensor.data, send.tensor.data, bytes);
            moved->add(Purpose::data, bytes);
          });
        });
      },
      timing);
}

std::unique_ptr<Communicator> ThreadCommunicator::split(int color, int key) {
  auto [group, rank] = group_->split(rank_, color, key);
  return std::make_unique<ThreadCommunicator>(std::move(group), rank, device_, link_bandwidth_,
                                              moved_);
}

}  // namespace zl::cpu
