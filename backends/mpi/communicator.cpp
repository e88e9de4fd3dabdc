#include "backends/mpi/communicator.h"

#include <vector>

namespace zl::mpi {

// What is enqueued may run when this communicator is gone: it shares the group.
void MpiCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  Call call = call_of(collective);
  device_.enqueue(
      stream, [group = group_, stream, call = std::move(call)] { group->run(stream, call); },
      timing);
}

void MpiCommunicator::exchange(StreamId stream, std::span<const Message> messages, Timing* timing) {
  check_messages(messages, rank(), size());
  device_.enqueue(
      stream,
      [group = group_, stream, own = std::vector<Message>(messages.begin(), messages.end())] {
        group->exchange(stream, own);
      },
      timing);
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  return std::make_unique<MpiCommunicator>(device_, group_->split(color, key));
}

}  // namespace zl::mpi
