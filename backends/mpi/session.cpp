#include "backends/mpi/session.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "backends/bootstrap/arrivals.h"
#include "backends/mpi/check.h"
#include "core/base/machine_memory.h"
#include "core/threads/stillness.h"

namespace zl::mpi {
namespace {

std::chrono::milliseconds patience = std::chrono::minutes(1);

std::string within_patience() { return std::to_string(patience.count()) + " ms"; }

std::string not_all_have_joined(const std::string& call, const std::string& missing) {
  return call + ": not all processes of the job have joined it within " + within_patience() +
         (missing.empty() ? "" : " (" + missing + ")") + ": ending this one";
}

// Every process says farewell to all others when it ends, in order or by an error that they know
// nothing of, and hears theirs.
class Farewells {
 public:
  void listen(MPI_Comm comm, int rank, int count) {
    comm_ = comm;
    for (int peer = 0; peer < count; ++peer) {
      if (peer == rank) continue;
      peers_.push_back(peer);
      check(MPI_Irecv(nullptr, 0, MPI_BYTE, peer, 0, comm_, &coming_.emplace_back()), "MPI_Irecv");
    }
  }

  std::vector<int> heard(bool said = true) {
    const std::lock_guard lock(mutex_);
    std::vector<int> ranks;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      int arrived = coming_[i] == MPI_REQUEST_NULL;
      if (arrived == 0) MPI_Test(&coming_[i], &arrived, MPI_STATUS_IGNORE);
      if ((arrived != 0) == said) ranks.push_back(peers_[i]);
    }
    return ranks;
  }

  // Returns who has not said it when for too long nobody has.
  std::vector<int> say() {
    for (const int peer : peers_) {
      MPI_Request sent = MPI_REQUEST_NULL;
      MPI_Isend(nullptr, 0, MPI_BYTE, peer, 0, comm_, &sent);
      MPI_Request_free(&sent);
    }
    std::vector<int> silent = heard(false);
    Stillness still;
    while (!silent.empty() && !still.lasts(patience)) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      std::vector<int> now = heard(false);
      if (now.size() < silent.size()) still.moved();
      silent = std::move(now);
    }
    return silent;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex mutex_;  // guards the requests
  std::vector<int> peers_;
  std::vector<MPI_Request> coming_;  // in the order of peers_; null: heard
};

class Session {
 public:
  Session() {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &processes_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_.count);
    const WatchedCall watched = watch_call("MPI_Comm_split_type");
    MPI_Comm node, all;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
          "MPI_Comm_split_type");
    MPI_Comm_size(node, &processes_.local);
    const std::int64_t seen = machine_memory();
    check(MPI_Allreduce(&seen, &processes_.machine_memory, 1, MPI_INT64_T, MPI_MIN, node),
          "MPI_Allreduce");
    MPI_Comm_free(&node);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    farewells_.listen(all, processes_.rank, processes_.count);
  }
  // MPI_Finalize waits for all: it is called when all have come.
  ~Session() {
    const std::vector<int> missing = farewells_.say();
    if (!missing.empty()) {
      print_error("rank " + std::to_string(processes_.rank) + " has ended, but rank " +
                  list(missing) + " not within " + within_patience() + " of it: aborting");
      abort(1);
    }
    const WatchedCall watched = watch_only_call("MPI_Finalize");
    MPI_Finalize();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Processes& processes() const { return processes_; }
  Farewells& farewells() { return farewells_; }

 private:
  static void start() {
    const WatchedCall watched = watch_only_call("MPI_Init_thread");
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    if (level >= MPI_THREAD_MULTIPLE) return;
    MPI_Finalize();
    throw Error(ErrorCode::unavailable,
                "communicator mpi: this MPI library does not take calls from several threads; "
                "use one built with MPI_THREAD_MULTIPLE");
  }

  Processes processes_;
  Farewells farewells_;
};

Session& session() {
  static Session only;
  return only;
}

}  // namespace

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(ErrorCode::failed, std::string(call) + ": " + text);
}

const Processes& processes() { return session().processes(); }

void set_patience(std::chrono::milliseconds value) { patience = value; }

std::vector<int> departed() { return session().farewells().heard(); }

std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// MPI_Abort asks the launcher, which a cut network may keep from answering.
void abort(int exit_code) {
  std::thread([exit_code] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    _exit(exit_code);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  _exit(exit_code);
}

void print_error(const std::string& message) {
  const std::string line = "zerolab: error: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

WatchedCall watch_call(const std::string& call) {
  return {patience, [call] { return not_all_have_joined(call, ""); }};
}

WatchedCall watch_only_call(const std::string& call) {
  if (!this_launch()) return watch_call(call);
  leave_mark(*this_launch(), call);
  const auto come = std::make_shared<std::set<int>>();  // the watchdog's
  const auto look = [call, come] { look_for_marks(*this_launch(), call, *come); };
  return {patience,
          [call, come, look] {
            look();
            return not_all_have_joined(call, who_is_missing(*this_launch(), *come));
          },
          look};
}

}  // namespace zl::mpi
