#include "backends/mpi/communicator.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "backends/cpu/move_data.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/slow_link.h"
#include "core/base/fnv.h"
#include "core/threads/call_text.h"

namespace zl::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{1};  // for messages that a rank sent before its end

int channel_of(StreamId stream) { return static_cast<int>(stream); }

// What a rank says of its call: all that same() compares, and words for a message.
struct Header {
  std::uint64_t digest = 0;
  char text[248] = {};

  explicit Header(const Call& call) {
    Fnv1a hash;
    const auto add = [&hash](auto value) { hash.add(static_cast<std::uint64_t>(value)); };
    add(call.kind);
    add(call.op);
    add(call.purpose);
    for (const Segment& segment : call.segments) {
      add(segment.source.dtype);
      add(segment.source.count());
      add(segment.destination.count());
    }
    digest = hash.value();
    std::strncpy(text, describe(call).c_str(), sizeof text - 1);
  }
  Header() = default;
};

static_assert(sizeof(Header) == MpiCommunicator::kHeaderBytes);

// Lets other processes have the processor, soon for longer.
class Pause {
 public:
  void operator()() {
    constexpr int kYields = 200;
    if (++waits_ < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  int waits_ = 0;
};

void copy_bytes(std::byte* destination, const std::byte* source, std::int64_t bytes) {
  if (destination != source && bytes > 0)
    std::memcpy(destination, source, static_cast<std::size_t>(bytes));
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
    scratch.resize(static_cast<std::size_t>(total));
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
  std::vector<const std::byte*> sources(static_cast<std::size_t>(ranks));
  for (int from = 0; from < ranks; ++from) {
    sources[static_cast<std::size_t>(from)] = from == rank ? own.data : parts.of(from);
  }
  cpu::reduce(own.dtype, call.op, sources, {&destination, 1}, own.count());
}

std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

void MpiCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  Call call{collective.kind,
            collective.op,
            collective.purpose,
            {collective.segments.begin(), collective.segments.end()}};
  device_.enqueue(
      stream, [this, stream, call = std::move(call)] { run_now(stream, call); }, timing);
}

void MpiCommunicator::run_now(StreamId stream, const Call& call) {
  if (size() == 1) {
    cpu::move_data({&call}, 0);
    return;
  }
  meet(stream, call);
  const Collective collective{call.kind, call.op, call.purpose, call.segments};
  cpu::carry(wire_bytes(collective, size()), link_bandwidth_, [&] { move(stream, call); });
}

void MpiCommunicator::meet(StreamId stream, const Call& call) {
  const std::int64_t number = ++calls_[static_cast<std::size_t>(stream)];
  const auto where = [&] {
    return "#" + std::to_string(number) + " of the stream '" + name_of(stream) + "'";
  };
  const Header mine(call);
  std::vector<Header> theirs(static_cast<std::size_t>(size()));
  Requests requests(channel_of(stream));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    requests.receive(peer, &theirs[static_cast<std::size_t>(peer)], sizeof(Header));
    requests.send(peer, &mine, sizeof(Header));
  }
  headers_.add(call.purpose, requests.sent());
  const auto start = Clock::now();
  wait(requests, call, [&] {
    if (Clock::now() - start < timeout_) return;
    throw Error(ErrorCode::failed,
                "collective timed out after " + std::to_string(timeout_.count()) + " ms: rank " +
                    std::to_string(rank()) + " waits at " + where() + " in " + describe(call) +
                    "; not there: rank " + list(requests.missing()));
  });
  theirs[static_cast<std::size_t>(rank())] = mine;
  for (int peer = 1; peer < size(); ++peer) {
    const Header& other = theirs[static_cast<std::size_t>(peer)];
    if (other.digest == theirs[0].digest) continue;
    throw Error(ErrorCode::failed, "collective mismatch at " + where() + ": rank 0 calls " +
                                       theirs[0].text + ", rank " + std::to_string(peer) +
                                       " calls " + other.text);
  }
}

void MpiCommunicator::wait(Requests& requests, const Call& call,
                           const std::function<void()>& waiting) {
  const auto leave = [&](const std::string& why) {
    throw RankLeft("rank " + std::to_string(rank()) + " waits in " + describe(call) + ", but " +
                   why);
  };
  Pause pause;
  Clock::time_point alone;  // since when it waits for ranks whose programs have ended
  while (!requests.done()) {
    if (const auto why = notices_.failure()) leave(*why);
    const std::vector<int> ended = notices_.ended(), missing = requests.missing();
    const auto first =
        std::find_first_of(missing.begin(), missing.end(), ended.begin(), ended.end());
    if (first == missing.end()) {
      alone = {};
    } else if (alone == Clock::time_point{}) {
      alone = Clock::now();
    } else if (Clock::now() - alone > kGrace) {
      leave("rank " + std::to_string(*first) + " has left: its program has ended");
    }
    if (waiting) waiting();
    pause();
  }
}

// All ranks have come: what can go wrong now is only that one leaves.
void MpiCommunicator::move(StreamId stream, const Call& call) {
  if (call.kind == CollectiveKind::all_reduce) return all_reduce(stream, call);
  if (call.kind == CollectiveKind::reduce_scatter) return reduce_scatter(stream, call);
  Requests requests(channel_of(stream));
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
  payload_.add(call.purpose, requests.sent());
  wait(requests, call, {});
}

void MpiCommunicator::reduce_scatter(StreamId stream, const Call& call) {
  const std::vector<Parts> parts =
      lay_out(scratch_[static_cast<std::size_t>(stream)], call, size(),
              [](const Segment& segment) { return segment.destination.bytes(); });
  Requests requests(channel_of(stream));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorView& source = call.segments[i].source;
    const std::int64_t chunk = call.segments[i].destination.bytes();
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      requests.receive(peer, parts[i].of(peer), chunk);
      requests.send(peer, source.data + peer * chunk, chunk);
    }
  }
  payload_.add(call.purpose, requests.sent());
  wait(requests, call, {});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [source, destination] = call.segments[i];
    const std::int64_t count = destination.count();
    reduce_parts(call, source.flat(rank() * count, count), parts[i], rank(), size(),
                 destination.data);
  }
}

// Each rank reduces its share of every tensor and sends it to all.
void MpiCommunicator::all_reduce(StreamId stream, const Call& call) {
  const auto share = [&](const TensorView& view, int peer) {
    const cpu::Share all = cpu::share_of(view.count(), peer, size());
    return view.flat(all.begin, all.end - all.begin);
  };
  const std::vector<Parts> parts =
      lay_out(scratch_[static_cast<std::size_t>(stream)], call, size(),
              [&](const Segment& segment) { return share(segment.source, rank()).bytes(); });
  Requests coming(channel_of(stream));
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
  payload_.add(call.purpose, coming.sent());
  wait(coming, call, {});
  Requests going(channel_of(stream));
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
  payload_.add(call.purpose, going.sent());
  wait(going, call, {});
}

}  // namespace zl::mpi
