// How the messages of a ProcessGroup meet and move.
#include <algorithm>
#include <set>
#include <utility>

#include "backends/cpu/slow_link.h"
#include "backends/mpi/header.h"
#include "backends/mpi/process_group.h"

namespace zl::mpi {

// One message under way: both sides' headers, and when they agree the data.
class Transfer {
 public:
  Transfer(const Group& group, StreamId stream, const Message& message, std::int64_t number)
      : group_(group),
        stream_(stream),
        message_(message),
        number_(number),
        mine_(message),
        sent_(group, message_channel(stream, message.sends)),
        coming_(group, message_channel(stream, !message.sends)),
        data_(group, data_channel(stream)) {
    sent_.send(message.peer, &mine_, sizeof mine_);
    coming_.receive(message.peer, &theirs_, sizeof theirs_);
  }

  const Message& message() const { return message_; }
  bool has_met() const { return has_met_; }
  bool is_done() const { return is_done_; }
  std::int64_t moved() const { return coming_.moved() + data_.moved(); }
  // Lets it go on. Throws Error{failed} when the two sides differ.
  void poll() {
    if (!has_met_) meet();
    if (has_met_ && !is_done_) is_done_ = data_.done() && sent_.done();
  }
  // "rank 1 waits at #2 of the stream 'compute' to send fp32 [128] to rank 3".
  std::string describe_wait() const {
    return zl::describe_wait(group_.world_rank(group_.rank()), number_, stream_, what());
  }
  std::string what() const { return describe(message_, group_.world_rank(message_.peer)); }

 private:
  void meet() {
    sent_.done();
    if (!coming_.done()) return;
    if (theirs_.digest != mine_.digest) throw Error(ErrorCode::failed, difference());
    has_met_ = true;
    if (message_.sends) {
      data_.send(message_.peer, message_.tensor.data, message_.tensor.bytes());
    } else {
      data_.receive(message_.peer, message_.tensor.data, message_.tensor.bytes());
    }
  }

  std::string difference() const {
    const int me = group_.world_rank(group_.rank()), peer = group_.world_rank(message_.peer);
    const bool sends = message_.sends;
    return describe_mismatch({stream_, number_, sends ? me : peer, sends ? peer : me,
                              sends ? mine_.text : theirs_.text,
                              sends ? theirs_.text : mine_.text});
  }

  const Group& group_;
  StreamId stream_;
  Message message_;
  std::int64_t number_;
  Header mine_, theirs_;
  Requests sent_, coming_, data_;  // go before what they write to
  bool has_met_ = false, is_done_ = false;
};

namespace {

using Transfers = std::vector<std::unique_ptr<Transfer>>;

// Lets all go on; messages to (or from) one rank meet in their order, as their data must travel.
void poll_all(const Transfers& transfers) {
  std::set<std::pair<int, bool>> held_up;
  for (const auto& each : transfers) {
    const std::pair line{each->message().peer, each->message().sends};
    if (!held_up.contains(line)) each->poll();
    if (!each->has_met()) held_up.insert(line);
  }
}

std::vector<int> peers_under_way(const Transfers& transfers) {
  std::vector<int> peers;
  for (const auto& each : transfers) {
    if (!each->is_done()) peers.push_back(each->message().peer);
  }
  return peers;
}

}  // namespace

// A message moves as soon as its two sides have met, whatever the others of the call wait for.
void ProcessGroup::exchange(StreamId stream, const std::vector<Message>& messages) {
  Transfers transfers;
  std::int64_t bytes[2] = {0, 0};
  for (const Message& message : messages) {
    const std::int64_t number =
        ++messages_[static_cast<std::size_t>(stream)][message.peer][message.sends];
    transfers.push_back(std::make_unique<Transfer>(*group_, stream, message, number));
    bytes[message.sends] += message.tensor.bytes();
    sent_->headers.add(Purpose::data, kHeaderBytes);
  }
  sent_->payload.add(Purpose::data, bytes[true]);
  if (transfers.empty()) return;
  const auto moved = [&] {
    std::int64_t sum = 0;
    for (const auto& each : transfers) sum += each->moved();
    return sum;
  };
  const auto wait_for = [&](const auto& is_enough) {
    const auto done = [&] {
      poll_all(transfers);
      return is_enough();
    };
    wait({transfers.front()->what(), done, [&] { return peers_under_way(transfers); }, moved,
          [&] { return late(transfers); }});
  };
  const auto has_met = [](const auto& each) { return each->has_met(); };
  const auto is_done = [](const auto& each) { return each->is_done(); };
  wait_for([&] { return std::any_of(transfers.begin(), transfers.end(), has_met); });
  cpu::carry(std::max(bytes[0], bytes[1]), link_bandwidth_, [&] {
    wait_for([&] { return std::all_of(transfers.begin(), transfers.end(), is_done); });
  });
}

// Those that have met nobody, else those whose data does not move.
std::string ProcessGroup::late(const std::vector<std::unique_ptr<Transfer>>& transfers) const {
  const bool alone = std::any_of(transfers.begin(), transfers.end(),
                                 [](const auto& each) { return !each->has_met(); });
  std::string waiting;
  std::set<int> peers;
  for (const auto& each : transfers) {
    if (alone ? each->has_met() : each->is_done()) continue;
    waiting += (waiting.empty() ? "" : "; ") + each->describe_wait();
    peers.insert(each->message().peer);
  }
  return timed_out("message") + waiting + (alone ? "" : "; all are there, but no data moves") +
         say(alone ? "not there" : "not done by", {peers.begin(), peers.end()});
}

}  // namespace zl::mpi
