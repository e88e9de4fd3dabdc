#include "backends/mpi/process_group.h"

#include <algorithm>
#include <thread>

#include "backends/cpu/move_data.h"
#include "backends/cpu/slow_link.h"
#include "backends/mpi/header.h"
#include "core/threads/call_text.h"
#include "core/threads/stillness.h"

namespace zl::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{1};  // for messages that a rank sent before its end

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

std::vector<int> others(int size, int me, const std::vector<int>& without) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (rank != me && std::find(without.begin(), without.end(), rank) == without.end()) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace

void ProcessGroup::run(StreamId stream, const Call& call) {
  if (size() == 1) {
    cpu::move_data({&call}, 0);
    return;
  }
  meet(stream, call);
  const Collective collective{call.kind, call.op, call.purpose, call.segments};
  cpu::carry(wire_bytes(collective, size()), link_bandwidth_, [&] { move(stream, call); });
}

std::shared_ptr<ProcessGroup> ProcessGroup::split(int color, int key) {
  ZL_CHECK(color >= 0, "the color of a group is 0 or more, not " + std::to_string(color));
  Call call;
  call.splits = true;
  meet(StreamId::compute, call);
  return std::make_shared<ProcessGroup>(group_->split(color, key), notices_, timeout_,
                                        link_bandwidth_, sent_);
}

void ProcessGroup::meet(StreamId stream, const Call& call) {
  ++number(stream);
  const Header mine(call);
  std::vector<Header> theirs(size());
  Requests requests(*group_, collective_channel(stream));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    requests.receive(peer, &theirs[peer], sizeof(Header));
    requests.send(peer, &mine, sizeof(Header));
  }
  sent_->headers.add(call.purpose, requests.sent());
  const auto missing = [&] { return requests.missing(); };
  wait({"in " + describe(call), [&] { return requests.done(); }, missing,
        [] { return std::int64_t{0}; },
        [&] {
          return late(stream, call) + say("there", others(size(), rank(), missing())) +
                 say("not there", missing());
        }});
  theirs[rank()] = mine;
  for (int peer = 1; peer < size(); ++peer) {
    const Header& other = theirs[peer];
    if (other.digest == theirs[0].digest) continue;
    throw Error(ErrorCode::failed, "collective mismatch at #" + std::to_string(number(stream)) +
                                       " of the stream '" + name_of(stream) + "': rank " +
                                       std::to_string(name(0)) + " calls " + theirs[0].text +
                                       ", rank " + std::to_string(name(peer)) + " calls " +
                                       other.text);
  }
}

void ProcessGroup::wait(Requests& requests, StreamId stream, const Call& call) {
  wait({"in " + describe(call), [&] { return requests.done(); }, [&] { return requests.missing(); },
        [&] { return requests.moved(); },
        [&] {
          return late(stream, call) + "; all are there, but no data moves" +
                 say("not sent by", requests.missing()) + say("not taken by", requests.not_taken());
        }});
}

void ProcessGroup::wait(const Wait& wait) {
  const auto leave = [&](const std::string& why) {
    throw RankLeft("rank " + std::to_string(name(rank())) + " waits " + wait.what + ", but " + why);
  };
  Pause pause;
  Clock::time_point alone;  // since when it waits for ranks whose programs have ended
  Stillness still;
  std::int64_t moved = wait.moved();
  while (!wait.done()) {
    if (const auto why = notices_.failure()) leave(*why);
    const std::vector<int> ended = notices_.ended(), missing = names(wait.missing());
    const auto first =
        std::find_first_of(missing.begin(), missing.end(), ended.begin(), ended.end());
    if (first == missing.end()) {
      alone = {};
    } else if (alone == Clock::time_point{}) {
      alone = Clock::now();
    } else if (Clock::now() - alone > kGrace) {
      leave("rank " + std::to_string(*first) + " has left: its program has ended");
    }
    if (wait.moved() != moved) {
      moved = wait.moved();
      still.moved();
    }
    if (still.lasts(timeout_)) throw TimedOut(wait.overdue());
    pause();
  }
}

std::string ProcessGroup::late(StreamId stream, const Call& call) {
  return timed_out("collective") +
         describe_wait(name(rank()), number(stream), stream, "in " + describe(call));
}

std::string ProcessGroup::timed_out(const std::string& noun) const {
  return noun + " timed out after " + std::to_string(timeout_.count()) + " ms: ";
}

std::string ProcessGroup::say(const std::string& what, const std::vector<int>& ranks) const {
  return ranks.empty() ? "" : "; " + what + ": rank " + list(names(ranks));
}

std::vector<int> ProcessGroup::names(std::vector<int> ranks) const {
  for (int& each : ranks) each = name(each);
  return ranks;
}

}  // namespace zl::mpi
