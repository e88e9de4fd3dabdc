#include "backends/mpi/messages.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine_memory.h"

namespace zl::mpi {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;  // MPI counts in int

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(ErrorCode::failed, std::string(call) + ": " + text);
}

class Session {
 public:
  Session() {
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_MULTIPLE) {
      MPI_Finalize();
      throw Error(ErrorCode::unavailable,
                  "communicator mpi: this MPI library does not take calls from several threads; "
                  "use one built with MPI_THREAD_MULTIPLE");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &processes_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_.count);
    MPI_Comm node;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
          "MPI_Comm_split_type");
    MPI_Comm_size(node, &processes_.local);
    const std::int64_t seen = machine_memory();
    check(MPI_Allreduce(&seen, &processes_.machine_memory, 1, MPI_INT64_T, MPI_MIN, node),
          "MPI_Allreduce");
    MPI_Comm_free(&node);
  }
  ~Session() { MPI_Finalize(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Processes& processes() const { return processes_; }

 private:
  Processes processes_;
};

const Session& session() {
  static const Session only;
  return only;
}

std::atomic<int> run_number{0};

}  // namespace

void begin_run() {
  constexpr int kRuns = 32768 / kChannels;  // MPI promises as many tags
  run_number = (run_number + 1) % kRuns;
}

const Processes& processes() { return session().processes(); }

void abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

struct Group::Handle {
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_world = false;  // lives until MPI ends
};

Group::Group(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {
  int size = 0;
  MPI_Comm_set_errhandler(handle_->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(handle_->comm, &rank_);
  MPI_Comm_size(handle_->comm, &size);
  world_ranks_.resize(size);
  const int mine = processes().rank;
  check(MPI_Allgather(&mine, 1, MPI_INT, world_ranks_.data(), 1, MPI_INT, handle_->comm),
        "MPI_Allgather");
}

Group::~Group() {
  if (!handle_->is_world) MPI_Comm_free(&handle_->comm);
}

const std::shared_ptr<const Group>& Group::world() {
  static const std::shared_ptr<const Group> only = [] {
    processes();  // MPI has begun
    auto handle = std::make_unique<Handle>();
    handle->is_world = true;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &handle->comm), "MPI_Comm_dup");
    return std::shared_ptr<const Group>(new Group(std::move(handle)));
  }();
  return only;
}

std::shared_ptr<const Group> Group::split(int color, int key) const {
  auto handle = std::make_unique<Handle>();
  check(MPI_Comm_split(handle_->comm, color, key, &handle->comm), "MPI_Comm_split");
  return std::shared_ptr<const Group>(new Group(std::move(handle)));
}

struct Requests::Pending {
  struct From {
    int peer = 0;
    bool receives = false;
  };
  std::vector<MPI_Request> requests;
  std::vector<From> from;  // of the request at the same place
};

Requests::Requests(const Group& group, int channel)
    : group_(group), channel_(channel), pending_(std::make_unique<Pending>()) {}

Requests::~Requests() {
  for (std::size_t i = 0; i < pending_->requests.size(); ++i) {
    MPI_Request& request = pending_->requests[i];
    if (request == MPI_REQUEST_NULL) continue;
    if (pending_->from[i].receives) {
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Request_free(&request);
    }
  }
}

void Requests::send(int to, const void* data, std::int64_t bytes) {
  add(to, false, const_cast<void*>(data), bytes);
}

void Requests::receive(int from, void* data, std::int64_t bytes) { add(from, true, data, bytes); }

void Requests::add(int peer, bool receives, void* data, std::int64_t bytes) {
  const int tag = run_number * kChannels + channel_;
  const MPI_Comm comm = group_.handle_->comm;
  for (std::int64_t first = 0; first < bytes; first += kLargest) {
    const int count = static_cast<int>(std::min(kLargest, bytes - first));
    std::byte* part = static_cast<std::byte*>(data) + first;
    MPI_Request request = MPI_REQUEST_NULL;
    if (receives) {
      check(MPI_Irecv(part, count, MPI_BYTE, peer, tag, comm, &request), "MPI_Irecv");
    } else {
      check(MPI_Isend(part, count, MPI_BYTE, peer, tag, comm, &request), "MPI_Isend");
      sent_ += count;
    }
    pending_->requests.push_back(request);
    pending_->from.push_back({peer, receives});
  }
}

bool Requests::done() {
  // One after the other: MPI_Testall need not mark those that are done while others are not.
  bool all = true;
  for (MPI_Request& request : pending_->requests) {
    if (request == MPI_REQUEST_NULL) continue;
    int arrived = 0;
    check(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
    all = all && arrived != 0;
  }
  return all;
}

std::vector<int> Requests::missing() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < pending_->requests.size(); ++i) {
    const auto& [peer, receives] = pending_->from[i];
    if (receives && pending_->requests[i] != MPI_REQUEST_NULL) ranks.push_back(peer);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace zl::mpi
