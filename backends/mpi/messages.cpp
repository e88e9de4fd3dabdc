#include "backends/mpi/messages.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "backends/mpi/check.h"

namespace zl::mpi {
namespace {

constexpr std::int64_t kLargest = std::int64_t{16}
                                  << 20;  // one that arrives shows that a link moves

std::atomic<int> run_number{0};

}  // namespace

void begin_run() {
  constexpr int kRuns = 32768 / kChannels;  // MPI promises as many tags
  run_number = (run_number + 1) % kRuns;
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
    const WatchedCall watched = watch_call("MPI_Comm_dup");
    auto handle = std::make_unique<Handle>();
    handle->is_world = true;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &handle->comm), "MPI_Comm_dup");
    return std::shared_ptr<const Group>(new Group(std::move(handle)));
  }();
  return only;
}

std::shared_ptr<const Group> Group::split(int color, int key) const {
  auto handle = std::make_unique<Handle>();
  const WatchedCall watched = watch_call("MPI_Comm_split");
  check(MPI_Comm_split(handle_->comm, color, key, &handle->comm), "MPI_Comm_split");
  return std::shared_ptr<const Group>(new Group(std::move(handle)));
}

struct Requests::Part {
  std::byte* data = nullptr;
  int count = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

// What goes to or comes from one process, in order.
struct Requests::Line {
  int peer = 0;
  bool receives = false;
  std::deque<Part> under_way, waiting;
  std::int64_t bytes = 0;  // under way
};

struct Requests::Pending {
  std::vector<Line> lines;

  Line& line(int peer, bool receives) {
    for (Line& each : lines) {
      if (each.peer == peer && each.receives == receives) return each;
    }
    return lines.emplace_back(Line{peer, receives, {}, {}, 0});
  }
};

Requests::Requests(const Group& group, int channel, std::int64_t window)
    : group_(group), channel_(channel), window_(window), pending_(std::make_unique<Pending>()) {}

Requests::~Requests() {
  for (Line& line : pending_->lines) {
    for (Part& part : line.under_way) {
      if (part.request == MPI_REQUEST_NULL) continue;
      if (line.receives) {
        MPI_Cancel(&part.request);
        MPI_Wait(&part.request, MPI_STATUS_IGNORE);
      } else {
        MPI_Request_free(&part.request);
      }
    }
  }
}

void Requests::send(int to, const void* data, std::int64_t bytes) {
  add(to, false, const_cast<void*>(data), bytes);
}

void Requests::receive(int from, void* data, std::int64_t bytes) { add(from, true, data, bytes); }

void Requests::add(int peer, bool receives, void* data, std::int64_t bytes) {
  Line& line = pending_->line(peer, receives);
  for (std::int64_t first = 0; first < bytes; first += kLargest) {
    const auto count = static_cast<int>(std::min(kLargest, bytes - first));
    line.waiting.push_back({static_cast<std::byte*>(data) + first, count});
    if (!receives) sent_ += count;
  }
  post(line);
}

void Requests::post(Line& line) {
  const int tag = run_number * kChannels + channel_;
  const MPI_Comm comm = group_.handle_->comm;
  while (!line.waiting.empty()) {
    Part& part = line.waiting.front();
    if (window_ != kAll && line.bytes > 0 && line.bytes + part.count > window_) return;
    if (line.receives) {
      check(MPI_Irecv(part.data, part.count, MPI_BYTE, line.peer, tag, comm, &part.request),
            "MPI_Irecv");
    } else {
      check(MPI_Isend(part.data, part.count, MPI_BYTE, line.peer, tag, comm, &part.request),
            "MPI_Isend");
    }
    line.bytes += part.count;
    line.under_way.push_back(part);
    line.waiting.pop_front();
  }
}

bool Requests::done() {
  bool all = true;
  for (Line& line : pending_->lines) {
    // One after the other: MPI_Testall need not mark those that are done while others are not.
    for (Part& part : line.under_way) {
      if (part.request == MPI_REQUEST_NULL) continue;
      int arrived = 0;
      check(MPI_Test(&part.request, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
      if (arrived == 0) continue;
      line.bytes -= part.count;
      ++moved_;
    }
    std::erase_if(line.under_way,
                  [](const Part& part) { return part.request == MPI_REQUEST_NULL; });
    post(line);
    all = all && line.under_way.empty();
  }
  return all;
}

std::vector<int> Requests::peers(bool receives) const {
  std::vector<int> ranks;
  for (const Line& line : pending_->lines) {
    if (line.receives == receives && !line.under_way.empty()) ranks.push_back(line.peer);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace zl::mpi
