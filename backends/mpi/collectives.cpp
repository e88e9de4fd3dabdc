// How the bytes of a ProcessGroup's collectives move.
#include <cstring>

#include "backends/cpu/move_data.h"
#include "backends/cpu/reduce.h"
#include "backends/mpi/header.h"
#include "backends/mpi/process_group.h"

namespace zl::mpi {
namespace {

void copy_bytes(std::byte* destination, const std::byte* source, std::int64_t bytes) {
  if (destination != source && bytes > 0) std::memcpy(destination, source, bytes);
}

// In a stream's scratch memory: the others' parts of what this rank reduces of one tensor.
struct Parts {
  std::byte* first;
  std::int64_t bytes;  // of each
  std::byte* of(int rank) const { return first + rank * bytes; }
};

// Of each tensor, `bytes(segment)` a rank. Scratch memory is kept: fresh pages cost more than the
// transfer.
template <class Bytes>
std::vector<Parts> lay_out(std::vector<std::byte>& scratch, const Call& call, int ranks,
                           const Bytes& bytes) {
  constexpr std::int64_t kAlignment = 64;
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;
  for (const Segment& segment : call.segments) {
    sizes.push_back((bytes(segment) + kAlignment - 1) / kAlignment * kAlignment);
    total += ranks * sizes.back();
  }
  if (static_cast<std::int64_t>(scratch.size()) < total) {
    scratch = {};  // nothing to move
    scratch.resize(total);
  }
  std::vector<Parts> parts;
  std::byte* next = scratch.data();
  for (const std::int64_t size : sizes) {
    parts.push_back({next, size});
    next += ranks * size;
  }
  return parts;
}

// In rank order, with the own part where it is.
void reduce_parts(const Call& call, const TensorView& own, const Parts& parts, int rank, int ranks,
                  std::byte* destination) {
  std::vector<const std::byte*> sources(ranks);
  for (int from = 0; from < ranks; ++from) {
    sources[from] = from == rank ? own.data : parts.of(from);
  }
  cpu::reduce(own.dtype, call.op, sources, {&destination, 1}, own.count());
}

}  // namespace

// All ranks have come: what can go wrong now is only that one leaves or stops.
void ProcessGroup::move(StreamId stream, const Call& call) {
  if (call.kind == CollectiveKind::all_reduce) return all_reduce(stream, call);
  if (call.kind == CollectiveKind::reduce_scatter) return reduce_scatter(stream, call);
  Requests requests(*group_, collective_channel(stream), Requests::kWindow);
  for (const auto& [source, destination] : call.segments) {
    for (int step = 0; step < size(); ++step) {  // every rank begins with itself
      const int peer = (rank() + step) % size();
      const auto exchange = [&](std::byte* to, const std::byte* from, std::int64_t bytes) {
        if (peer == rank()) return copy_bytes(to, from, bytes);
        requests.receive(peer, to, bytes);
        requests.send(peer, from, bytes);
      };
      const std::int64_t chunk =
          call.kind == CollectiveKind::all_to_all ? source.bytes() / size() : source.bytes();
      if (call.kind == CollectiveKind::all_gather) {
        exchange(destination.data + peer * chunk, source.data, chunk);
      } else if (call.kind == CollectiveKind::all_to_all) {
        exchange(destination.data + peer * chunk, source.data + peer * chunk, chunk);
      } else if (rank() == 0) {
        peer == 0 ? copy_bytes(destination.data, source.data, chunk)
                  : requests.send(peer, source.data, chunk);
      } else if (peer == 0) {
        requests.receive(0, destination.data, chunk);
      }
    }
  }
  sent_->payload.add(call.purpose, requests.sent());
  wait(requests, stream, call);
}

void ProcessGroup::reduce_scatter(StreamId stream, const Call& call) {
  const std::vector<Parts> parts =
      lay_out(scratch_[static_cast<std::size_t>(stream)], call, size(),
              [](const Segment& segment) { return segment.destination.bytes(); });
  Requests requests(*group_, collective_channel(stream), Requests::kWindow);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorView& source = call.segments[i].source;
    const std::int64_t chunk = call.segments[i].destination.bytes();
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      requests.receive(peer, parts[i].of(peer), chunk);
      requests.send(peer, source.data + peer * chunk, chunk);
    }
  }
  sent_->payload.add(call.purpose, requests.sent());
  wait(requests, stream, call);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [source, destination] = call.segments[i];
    const std::int64_t count = destination.count();
    reduce_parts(call, source.flat(rank() * count, count), parts[i], rank(), size(),
                 destination.data);
  }
}

// Each rank reduces its share of every tensor and sends it to all.
void ProcessGroup::all_reduce(StreamId stream, const Call& call) {
  const auto share = [&](const TensorView& view, int peer) {
    const cpu::Share all = cpu::share_of(view.count(), peer, size());
    return view.flat(all.begin, all.end - all.begin);
  };
  const std::vector<Parts> parts =
      lay_out(scratch_[static_cast<std::size_t>(stream)], call, size(),
              [&](const Segment& segment) { return share(segment.source, rank()).bytes(); });
  Requests coming(*group_, collective_channel(stream), Requests::kWindow);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorView& view = call.segments[i].source;
    const TensorView own = share(view, rank());
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      const TensorView theirs = share(view, peer);
      coming.receive(peer, parts[i].of(peer), own.bytes());
      coming.send(peer, theirs.data, theirs.bytes());
    }
  }
  sent_->payload.add(call.purpose, coming.sent());
  wait(coming, stream, call);
  Requests going(*group_, collective_channel(stream), Requests::kWindow);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorView& view = call.segments[i].destination;
    const TensorView own = share(view, rank());
    reduce_parts(call, own, parts[i], rank(), size(), own.data);
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      const TensorView theirs = share(view, peer);
      going.receive(peer, theirs.data, theirs.bytes());
      going.send(peer, own.data, own.bytes());
    }
  }
  sent_->payload.add(call.purpose, going.sent());
  wait(going, stream, call);
}

}  // namespace zl::mpi
