// Moves the data of one collective among ranks that share memory.
#include "backends/cpu/move_data.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/reduce.h"

namespace zl::cpu {
namespace {

std::int64_t copy_bytes(std::byte* destination, const std::byte* source, std::int64_t bytes,
                        int threads) {
  if (destination == source) return bytes;
  parallel_for(ExecContext{threads}, bytes, 4 * kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(destination + begin, source + begin, end - begin);
  });
  return bytes;
}

// Each rank reduces its share of all segments laid end to end and writes it to everyone: nobody
// else reads or writes those elements.
std::int64_t all_reduce(const ThreadGroup::Calls& calls, int rank) {
  const Call& mine = *calls[rank];
  const int ranks = static_cast<int>(calls.size());
  std::int64_t total = 0;
  for (const Segment& segment : mine.segments) total += segment.source.count();
  const Share share = share_of(total, rank, ranks);
  std::vector<const std::byte*> sources(ranks);
  std::vector<std::byte*> destinations(ranks);
  std::int64_t start = 0, moved = 0;
  for (std::size_t i = 0; i < mine.segments.size(); ++i) {
    const TensorView& view = mine.segments[i].source;
    const std::int64_t begin = std::max(share.begin - start, std::int64_t{0});
    const std::int64_t end = std::min(share.end - start, view.count());
    start += view.count();
    if (begin >= end) continue;
    const std::int64_t offset = begin * static_cast<std::int64_t>(size_of(view.dtype));
    for (int from = 0; from < ranks; ++from) {
      const Segment& theirs = (*calls[from]).segments[i];
      sources[from] = theirs.source.data + offset;
      destinations[from] = theirs.destination.data + offset;
    }
    reduce(view.dtype, mine.op, sources, destinations, end - begin);
    const auto of_others = static_cast<std::int64_t>(sources.size() + destinations.size()) - 2;
    moved += of_others * view.flat(begin, end - begin).bytes();
  }
  return moved;
}

}  // namespace

Share share_of(std::int64_t total, int rank, int ranks) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t lines = (total + kLine - 1) / kLine;
  return {std::min(total, lines * rank / ranks * kLine),
          std::min(total, lines * (rank + 1) / ranks * kLine)};
}

std::int64_t move_data(const ThreadGroup::Calls& calls, int rank, int threads) {
  const Call& mine = *calls[rank];
  const int ranks = static_cast<int>(calls.size());
  if (ranks > 1) threads = 1;
  const bool copies = mine.kind == CollectiveKind::broadcast || ranks == 1;
  if (mine.kind == CollectiveKind::all_reduce && !copies) return all_reduce(calls, rank);
  std::vector<const std::byte*> sources(ranks);
  std::int64_t moved = 0;
  for (std::size_t i = 0; i < mine.segments.size(); ++i) {
    const Segment& segment = mine.segments[i];
    std::byte* destination = segment.destination.data;
    const auto source = [&](int from) { return (*calls[from]).segments[i].source.data; };
    const auto copy = [&](int from, std::byte* to, const std::byte* bytes, std::int64_t count) {
      const std::int64_t copied = copy_bytes(to, bytes, count, threads);
      if (from != rank) moved += copied;
    };
    if (copies) {
      copy(0, destination, source(0), segment.source.bytes());
    } else if (mine.kind == CollectiveKind::all_gather) {
      const std::int64_t chunk = segment.source.bytes();
      // Every rank starts elsewhere, so that they do not read one source at the same time.
      for (int step = 0; step < ranks; ++step) {
        const int from = (rank + step) % ranks;
        copy(from, destination + from * chunk, source(from), chunk);
      }
    } else if (mine.kind == CollectiveKind::all_to_all) {
      const std::int64_t chunk = segment.source.bytes() / ranks;
      for (int step = 0; step < ranks; ++step) {
        const int from = (rank + step) % ranks;
        copy(from, destination + from * chunk, source(from) + rank * chunk, chunk);
      }
    } else {
      const std::int64_t chunk = segment.destination.bytes();
      for (int from = 0; from < ranks; ++from) {
        sources[from] = source(from) + rank * chunk;
      }
      reduce(segment.source.dtype, mine.op, sources, {&destination, 1},
             segment.destination.count());
      moved += (ranks - 1) * chunk;
    }
  }
  return moved;
}

}  // namespace zl::cpu
