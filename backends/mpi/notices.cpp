#include "backends/mpi/notices.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/rank/pool.h"
#include "core/threads/failures.h"
#include "core/threads/stillness.h"

namespace zl::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNoticeChannel = kChannels - 1;
constexpr std::chrono::milliseconds kSoon{800};  // for who has been waited for already
constexpr std::chrono::milliseconds kLook{10};

}  // namespace

// Travels as bytes. A rank sends at most one that is not final, then exactly one that is.
struct Notices::Note {
  enum class Kind : std::int32_t { well, cause, consequence };
  Kind kind = Kind::well;
  bool final = false;
  bool timed_out = false;
  ErrorCode code = ErrorCode::failed;
  std::int64_t requested = -1;  // out of memory: bytes
  char text[2000] = {};

  void write(const std::string& message) { std::strncpy(text, message.c_str(), sizeof text - 1); }
  static Note of(const std::exception_ptr& error);
};

Notices::Note Notices::Note::of(const std::exception_ptr& error) {
  Note note;
  if (!error) return note;
  note.kind = Kind::cause;
  note.write(message_of(error));
  try {
    std::rethrow_exception(error);
  } catch (const RankLeft&) {
    note.kind = Kind::consequence;
  } catch (const OutOfMemory& memory) {
    note.code = memory.code();
    note.requested = memory.requested();
  } catch (const TimedOut&) {
    note.timed_out = true;
  } catch (const Error& each) {
    note.code = each.code();
  } catch (...) {  // a message without a code
  }
  return note;
}

struct Notices::Peer {
  explicit Peer(int number) : rank(number) { listen(); }

  void listen() {
    arriving = std::make_unique<Note>();
    request = std::make_unique<Requests>(*Group::world(), kNoticeChannel);
    request->receive(rank, arriving.get(), sizeof(Note));
  }
  void poll() {
    if (ended || !request->done()) return;
    last = *arriving;
    ended = last.final;
    if (!ended) listen();
  }

  int rank;
  std::unique_ptr<Note> arriving;
  std::unique_ptr<Requests> request;  // goes before what it writes to
  Note last;
  bool ended = false;
};

Notices::Notices(std::chrono::milliseconds timeout)
    : timeout_(timeout), sent_(*Group::world(), kNoticeChannel) {
  begin_run();
  for (int rank = 0; rank < processes().count; ++rank) {
    if (rank != processes().rank) peers_.emplace_back(rank);
  }
}

Notices::~Notices() = default;

// Whoever departs has sent its notes before.
void Notices::poll() {
  sent_.done();
  std::vector<int> gone;
  if (const auto now = Clock::now(); now - looked_ > kLook) {
    looked_ = now;
    gone = departed();
  }
  for (Peer& peer : peers_) {
    peer.poll();
    if (std::find(gone.begin(), gone.end(), peer.rank) != gone.end()) peer.ended = true;
  }
}

void Notices::tell(const Note& note) {
  told_.push_back(std::make_unique<Note>(note));
  for (const Peer& peer : peers_) sent_.send(peer.rank, told_.back().get(), sizeof(Note));
}

void Notices::leave(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (own_) return;
  own_ = why;
  Note note;
  note.kind = Note::Kind::consequence;
  note.write(why);
  tell(note);
}

std::optional<std::string> Notices::failure() {
  const std::lock_guard lock(mutex_);
  poll();
  const auto text = [](int rank, const std::string& why) {
    return "rank " + std::to_string(rank) + " has left: " + why;
  };
  for (const Peer& peer : peers_) {
    if (peer.last.kind != Note::Kind::well) return text(peer.rank, peer.last.text);
  }
  if (own_) return text(processes().rank, *own_);
  return std::nullopt;
}

std::vector<int> Notices::ended() {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks;
  for (const Peer& peer : peers_) {
    if (peer.ended) ranks.push_back(peer.rank);
  }
  return ranks;
}

void Notices::finish(const std::exception_ptr& own) {
  Note note = Note::of(own);
  note.final = true;
  const std::lock_guard lock(mutex_);
  tell(note);
  std::vector<int> waited_for = running();
  Stillness still;  // since the latest end of another
  while (true) {
    poll();
    const std::vector<int> now = running();
    if (now.empty() && sent_.done()) break;
    if (now.size() < waited_for.size()) still.moved();
    waited_for = now;
    if (still.lasts(timed_out(note) ? kSoon : timeout_)) give_up(note);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  throw_first_cause(note);
}

std::vector<int> Notices::running() const {
  std::vector<int> ranks;
  for (const Peer& peer : peers_) {
    if (!peer.ended) ranks.push_back(peer.rank);
  }
  return ranks;
}

bool Notices::timed_out(const Note& own) const {
  return own.timed_out || std::any_of(peers_.begin(), peers_.end(),
                                      [](const Peer& peer) { return peer.last.timed_out; });
}

// The others who give up at the same time can speak, too.
void Notices::give_up(const Note& own) {
  constexpr std::chrono::milliseconds kWord{200};
  print_error("rank " + std::to_string(processes().rank) + ": " +
              (own.kind == Note::Kind::well ? "has ended" : own.text) + "; rank " +
              list(running()) + " has not ended since: aborting");
  std::this_thread::sleep_for(kWord);
  abort(static_cast<int>(own.code));
}

void Notices::throw_first_cause(const Note& own) {
  const int me = processes().rank;
  const Note* cause = nullptr;
  int of = 0;
  for (const Note::Kind kind : {Note::Kind::cause, Note::Kind::consequence}) {
    for (int rank = 0; rank < processes().count && cause == nullptr; ++rank) {
      const auto at = static_cast<std::size_t>(rank < me ? rank : rank - 1);
      const Note& each = rank == me ? own : peers_[at].last;
      if (each.kind != kind) continue;
      cause = &each;
      of = rank;
    }
  }
  if (cause == nullptr) return;
  const std::string message =
      (processes().count > 1 ? "rank " + std::to_string(of) + ": " : "") + cause->text;
  if (cause->requested >= 0) throw OutOfMemory(message, cause->requested);
  const bool is_told = me > 0 && peers_.front().last.final;  // by rank 0, which was in this run
  if (is_told) throw RankLeft(message, cause->code);
  throw Error(cause->code, message);
}

}  // namespace zl::mpi
