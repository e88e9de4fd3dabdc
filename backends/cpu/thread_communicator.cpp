#include "backends/cpu/thread_communicator.h"

#include <utility>

#include "backends/cpu/move_data.h"
#include "backends/cpu/slow_link.h"

namespace zl::cpu {
void ThreadCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  Call call{collective.kind,
            collective.op,
            collective.purpose,
            {collective.segments.begin(), collective.segments.end()}};
  const std::int64_t bytes = wire_bytes(collective, size());
  device_.enqueue(
      stream,
      [this, stream, bytes, call = std::move(call)] {
        group_.run(rank_, stream, call, [&](const ThreadGroup::Calls& calls) {
          carry(bytes, link_bandwidth_, [&] { moved_.add(call.purpose, move_data(calls, rank_)); });
        });
      },
      timing);
}

}  // namespace zl::cpu
