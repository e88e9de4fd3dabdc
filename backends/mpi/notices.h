// What the processes of a run tell each other about its end: that a rank leaves early, and how each
// one ended. All of them come to the same outcome.
// Ownership: one object per run and process. Threads: leave and failure from any, finish from the
// rank's.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/mpi/messages.h"

namespace zl::mpi {

class Notices {
 public:
  // Begins the run. timeout: how long a rank that ends waits for the others to end.
  explicit Notices(std::chrono::milliseconds timeout);
  ~Notices();

  // This rank joins no further collective: the others are to leave theirs. Only the first counts.
  void leave(const std::string& why);
  // Why a collective under way cannot end: a rank (this one, too) has left, "rank 2 has left: ...".
  std::optional<std::string> failure();
  // The ranks whose programs have ended well.
  std::vector<int> ended();

  // Tells the others how this rank ended (nullptr: well), hears how they did, and throws the cause,
  // the same everywhere: on rank 0 as it is, on the others as RankLeft (as it is where rank 0 was
  // not in the run), out of memory as it is on all. When the others do not end in time all are
  // ended; where a rank did not come in time already, soon.
  void finish(const std::exception_ptr& own);

 private:
  struct Note;
  struct Peer;
  void poll();  // mutex_ is held
  void tell(const Note& note);
  std::vector<int> running() const;
  bool timed_out(const Note& own) const;
  [[noreturn]] void give_up(const Note& own);
  void throw_first_cause(const Note& own);

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;                              // guards all below
  std::chrono::steady_clock::time_point looked_;  // for those that departed
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Note>> told_;  // must stay until they are sent
  Requests sent_;
  std::optional<std::string> own_;  // why this rank has left
};

}  // namespace zl::mpi
