#include "backends/cpu/thread_communicator.h"

#include <utility>

#include "backends/cpu/move_data.h"

namespace zl::cpu {
void ThreadCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  Call call{collective.kind,
            collective.op,
            collective.group,
            {collective.segments.begin(), collective.segments.end()}};
  device_.enqueue(
      stream,
      [&group = group_, rank = rank_, stream, call = std::move(call)] {
        group.run(rank, stream, call,
                  [rank](const ThreadGroup::Calls& calls) { move_data(calls, rank); });
      },
      timing);
}

}  // namespace zl::cpu
