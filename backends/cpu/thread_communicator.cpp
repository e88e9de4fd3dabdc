#include "backends/cpu/thread_communicator.h"

#include <chrono>
#include <thread>
#include <utility>

#include "backends/cpu/move_data.h"

namespace zl::cpu {
void ThreadCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  Call call{collective.kind,
            collective.op,
            collective.group,
            {collective.segments.begin(), collective.segments.end()}};
  const double transfer =
      link_bandwidth_ > 0 ? static_cast<double>(wire_bytes(collective, size())) / link_bandwidth_
                          : 0.0;
  device_.enqueue(
      stream,
      [&group = group_, rank = rank_, stream, transfer, call = std::move(call)] {
        group.run(rank, stream, call, [rank, transfer](const ThreadGroup::Calls& calls) {
          const auto begin = std::chrono::steady_clock::now();
          move_data(calls, rank);
          if (transfer > 0) {  // the link is still busy
            std::this_thread::sleep_until(
                begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(transfer)));
          }
        });
      },
      timing);
}

}  // namespace zl::cpu
