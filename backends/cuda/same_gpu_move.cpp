#include "backends/cuda/same_gpu_move.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "backends/cuda/collectives/reduce.h"
#include "backends/cuda/error.h"

namespace zl::cuda {
namespace {

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
int ranks_of(const ThreadGroup::Calls& calls) { return static_cast<int>(calls.size()); }

std::byte* offset_by(std::byte* data, std::int64_t elements, DType dtype) {
  return data + elements * static_cast<std::int64_t>(size_of(dtype));
}

// Each rank reduces its share of the elements and writes it to everyone: nobody else reads or
// writes those, so tensors may be reduced in place.
void all_reduce(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                std::size_t segment) {
  constexpr std::int64_t kGrain = 1024;  // shares begin at whole packs
  const Call& mine = *calls[index(rank)];
  const TensorView& view = mine.segments[segment].source;
  const std::int64_t grains = (view.count() + kGrain - 1) / kGrain;
  const std::int64_t begin = std::min(view.count(), grains * rank / ranks_of(calls) * kGrain);
  const std::int64_t end = std::min(view.count(), grains * (rank + 1) / ranks_of(calls) * kGrain);
  RankPointers sources, destinations;
  for (int other = 0; other < ranks_of(calls); ++other) {
    const Segment& theirs = calls[index(other)]->segments[segment];
    sources.at[index(other)] = offset_by(theirs.source.data, begin, view.dtype);
    destinations.at[index(other)] = offset_by(theirs.destination.data, begin, view.dtype);
  }
  reduce(context, view.dtype, mine.op, sources, ranks_of(calls), destinations, ranks_of(calls),
         end - begin);
}

void reduce_scatter(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                    std::size_t segment) {
  const Call& mine = *calls[index(rank)];
  const TensorView& chunk = mine.segments[segment].destination;
  RankPointers sources, destination;
  destination.at[0] = chunk.data;
  for (int other = 0; other < ranks_of(calls); ++other) {
    sources.at[index(other)] = offset_by(calls[index(other)]->segments[segment].source.data,
                                         rank * chunk.count(), chunk.dtype);
  }
  reduce(context, chunk.dtype, mine.op, sources, ranks_of(calls), destination, 1, chunk.count());
}

void all_gather(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                std::size_t segment) {
  const TensorView& whole = calls[index(rank)]->segments[segment].destination;
  for (int other = 0; other < ranks_of(calls); ++other) {
    const TensorView& chunk = calls[index(other)]->segments[segment].source;
    copy_on_gpu(context, offset_by(whole.data, other * chunk.count(), chunk.dtype), chunk);
  }
}

void all_to_all(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                std::size_t segment) {
  const TensorView& whole = calls[index(rank)]->segments[segment].destination;
  const std::int64_t chunk = whole.count() / ranks_of(calls);
  for (int other = 0; other < ranks_of(calls); ++other) {
    const TensorView& theirs = calls[index(other)]->segments[segment].source;
    copy_on_gpu(context, offset_by(whole.data, other * chunk, whole.dtype),
                theirs.flat(rank * chunk, chunk));
  }
}

}  // namespace

void move_on_gpu(int rank, const ExecContext& context, const ThreadGroup::Calls& calls) {
  const Call& mine = *calls[index(rank)];
  for (std::size_t i = 0; i < mine.segments.size(); ++i) {
    switch (mine.kind) {
      case CollectiveKind::all_reduce:
        all_reduce(rank, context, calls, i);
        break;
      case CollectiveKind::reduce_scatter:
        reduce_scatter(rank, context, calls, i);
        break;
      case CollectiveKind::all_gather:
        all_gather(rank, context, calls, i);
        break;
      case CollectiveKind::broadcast:
        copy_on_gpu(context, mine.segments[i].destination.data, calls[0]->segments[i].source);
        break;
      case CollectiveKind::all_to_all:
        all_to_all(rank, context, calls, i);
        break;
    }
  }
}

void copy_on_gpu(const ExecContext& context, std::byte* destination, const TensorView& source) {
  if (destination == source.data || source.bytes() == 0) return;
  check(cudaMemcpyAsync(destination, source.data, static_cast<std::size_t>(source.bytes()),
                        cudaMemcpyDeviceToDevice, context.stream),
        "cudaMemcpyAsync");
}

}  // namespace zl::cuda
