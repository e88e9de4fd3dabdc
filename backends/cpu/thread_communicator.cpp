#include "backends/cpu/thread_communicator.h"

#include <utility>

#include "backends/cpu/reduce.h"

namespace zl::cpu {
namespace {

void check(const Collective& collective, int ranks) {
  const auto require = [&](bool ok, const char* what) {
    if (ok) return;
    throw Error(ErrorCode::failed, std::string(zl::name_of(collective.kind)) + ": " + what);
  };
  require(!collective.segments.empty(), "there is at least one tensor");
  for (const auto& [source, destination] : collective.segments) {
    const bool gathers = collective.kind == CollectiveKind::all_gather;
    const bool scatters = collective.kind == CollectiveKind::reduce_scatter;
    const bool reduces = scatters || collective.kind == CollectiveKind::all_reduce;
    require(source.dtype == destination.dtype, "source and destination have one type");
    require(!reduces || can_reduce(source.dtype, collective.op),
            "fp64, fp32, bf16 and fp16 can be reduced, int32 except by average");
    require(source.count() * (gathers ? ranks : 1) == destination.count() * (scatters ? ranks : 1),
            "element counts of source and destination fit the number of ranks");
  }
}

}  // namespace

void ThreadCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check(collective, size());
  Call call{collective.kind,
            collective.op,
            collective.group,
            {collective.segments.begin(), collective.segments.end()}};
  device_.enqueue(
      stream,
      [&group = group_, rank = rank_, stream, call = std::move(call)] {
        group.run(rank, stream, call);
      },
      timing);
}

}  // namespace zl::cpu
