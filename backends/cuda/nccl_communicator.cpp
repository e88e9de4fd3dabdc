// Collectives through NCCL. Communicators are non-blocking, so that a rank that waits for others
// can be released: by a timeout, or by aborting its communicator when another rank leaves.
#include "backends/cuda/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backends/cuda/error.h"
#include "backends/cuda/event_ring.h"
#include "backends/cuda/nccl_library.h"
#include "core/threads/call_text.h"
#include "core/threads/failures.h"

namespace zl::cuda {
namespace {

using Clock = std::chrono::steady_clock;

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    default:
      return ncclUint8;
  }
}

ncclRedOp_t op_of(ReduceOp op) {
  constexpr ncclRedOp_t kOps[] = {ncclSum, ncclAvg, ncclMax};
  return kOps[static_cast<std::size_t>(op)];
}

bool is_past(const EventRing::Event& event) {
  const cudaError_t status = cudaEventQuery(event.get());
  if (status == cudaErrorNotReady) cudaGetLastError();
  return status == cudaSuccess;
}

// Collectives under way on one rank, oldest first, for the watchdog.
struct UnderWay {
  std::string what;
  std::int64_t number = 0;
  EventRing::Event begun, done;
  // When the watchdog saw that its turn had come: work before it may take any time.
  std::optional<Clock::time_point> since;
};

struct Member {
  std::mutex mutex;  // guards all below: the communicator may be aborted by another thread
  int ordinal = 0;   // of its GPU
  ncclComm_t communicator = nullptr;
  EventRing events;
  std::deque<UnderWay> under_way;
  std::int64_t calls = 0;

  EventRing::Event mark(Stream stream) { return events.share(events.record(stream)); }
  // Gives back the events of collectives that have ended.
  void retire() {
    while (!under_way.empty() && is_past(under_way.front().done)) under_way.pop_front();
  }
};

class NcclGroup final : public RankGroup {
 public:
  NcclGroup(int ranks, std::chrono::milliseconds timeout) : timeout_(timeout), members_(ranks) {
    for (auto& member : members_) member = std::make_unique<Member>();
    check(nccl().get_unique_id(&id_), "ncclGetUniqueId");
    watchdog_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  }
  ~NcclGroup() override {
    watchdog_.request_stop();
    watchdog_.join();
  }

  std::unique_ptr<Communicator> join(Device& device, int rank) override;
  void leave(int rank, const std::string& why) override {
    fail("rank " + std::to_string(rank) + " has left: " + why);
  }
  void finish(int rank) override {
    if (has_failed()) throw_failure(rank, "has enqueued its last collective");
  }
  int ranks() const { return static_cast<int>(members_.size()); }

  void run(int rank, const Call& call, Stream stream) {
    Member& mine = *members_[rank];
    const std::string what = describe(call);
    const std::lock_guard lock(mine.mutex);
    if (mine.communicator == nullptr) throw_failure(rank, "calls " + what);
    mine.retire();
    const EventRing::Event begun = mine.mark(stream);
    {
      GroupCall group;
      for (const Segment& segment : call.segments) {
        if (call.kind == CollectiveKind::all_to_all) {
          exchange(mine.communicator, segment, stream);
        } else {
          enqueue(mine.communicator, call, segment, stream);
        }
      }
      group.end();
    }
    settle(rank, what);
    mine.under_way.push_back({what, ++mine.calls, begun, mine.mark(stream), {}});
  }

  // has_failed: what is under way may wait for ranks that never come.
  void close(int rank, bool has_failed) {
    Member& mine = *members_[rank];
    const std::lock_guard lock(mine.mutex);
    mine.under_way.clear();  // the rank's own thread destroys its events
    mine.events = {};
    if (has_failed) return abort(mine);
    if (mine.communicator != nullptr) nccl().destroy(mine.communicator);
    mine.communicator = nullptr;
  }

 private:
  // Calls that NCCL starts at once. A failed call must not leave the thread in the middle of one.
  class GroupCall {
   public:
    GroupCall() { check(nccl().group_start(), "ncclGroupStart"); }
    ~GroupCall() {
      if (is_open_) nccl().group_end();
    }
    GroupCall(const GroupCall&) = delete;
    GroupCall& operator=(const GroupCall&) = delete;
    void end() {
      is_open_ = false;
      const ncclResult_t status = nccl().group_end();
      if (status != ncclInProgress) check(status, "ncclGroupEnd");
    }

   private:
    bool is_open_ = true;
  };

  static void check(ncclResult_t status, const std::string& call) {
    if (status == ncclSuccess) return;
    throw Error(ErrorCode::failed, call + ": " + nccl().error_string(status));
  }

  static void enqueue(ncclComm_t communicator, const Call& call, const Segment& segment,
                      Stream stream) {
    const auto& [source, destination] = segment;
    const ncclDataType_t type = type_of(source.dtype);
    const std::size_t from = source.count();
    ncclResult_t status = ncclSuccess;
    switch (call.kind) {
      case CollectiveKind::all_reduce:
        status = nccl().all_reduce(source.data, destination.data, from, type, op_of(call.op),
                                   communicator, stream);
        break;
      case CollectiveKind::reduce_scatter:
        status = nccl().reduce_scatter(source.data, destination.data, destination.count(), type,
                                       op_of(call.op), communicator, stream);
        break;
      case CollectiveKind::all_gather:
        status = nccl().all_gather(source.data, destination.data, from, type, communicator, stream);
        break;
      case CollectiveKind::broadcast:
        status =
            nccl().broadcast(source.data, destination.data, from, type, 0, communicator, stream);
        break;
      case CollectiveKind::all_to_all:
        break;  // exchange()
    }
    if (status != ncclInProgress) check(status, describe(call));
  }

  // Within a group all sends and receives are under way at once.
  void exchange(ncclComm_t communicator, const Segment& segment, Stream stream) const {
    const std::int64_t chunk = segment.source.count() / ranks();
    const ncclDataType_t type = type_of(segment.source.dtype);
    const auto require = [](ncclResult_t status, const char* what) {
      if (status != ncclInProgress) check(status, what);
    };
    for (int peer = 0; peer < ranks(); ++peer) {
      require(nccl().send(segment.source.flat(peer * chunk, chunk).data, chunk, type, peer,
                          communicator, stream),
              "ncclSend");
      require(nccl().receive(segment.destination.flat(peer * chunk, chunk).data, chunk, type, peer,
                             communicator, stream),
              "ncclRecv");
    }
  }

  // The member's mutex is held.
  static void abort(Member& member) {
    if (member.communicator != nullptr) nccl().abort(member.communicator);
    member.communicator = nullptr;
  }

  // A non-blocking call has been taken over when the communicator is no longer in progress. That
  // can need the other ranks (who connect in their first collective), one of which may have left.
  // The member's mutex is held: nobody else could abort.
  void settle(int rank, const std::string& what) {
    Member& mine = *members_[rank];
    const Clock::time_point deadline = Clock::now() + timeout_;
    ncclResult_t state = ncclInProgress;
    while (true) {
      check(nccl().async_error(mine.communicator, &state), "ncclCommGetAsyncError");
      if (state != ncclInProgress) break;
      if (has_failed()) {
        abort(mine);
        throw_failure(rank, "calls " + what);
      }
      if (Clock::now() > deadline) {
        abort(mine);
        throw Error(ErrorCode::failed, what + ": NCCL took no answer within " +
                                           std::to_string(timeout_.count()) + " ms");
      }
      std::this_thread::yield();
    }
    check(state, what);
  }

  // Ends everybody's collectives; the first reason counts.
  void fail(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      failure_ = reason;
    }
    for (auto& member : members_) {
      const std::lock_guard lock(member->mutex);
      abort(*member);
    }
  }

  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

  [[noreturn]] void throw_failure(int rank, const std::string& does) {
    const std::lock_guard lock(mutex_);
    throw RankLeft("rank " + std::to_string(rank) + " " + does + ", but " +
                   failure_.value_or("its communicator is closed"));
  }

  // Names a collective that does not end, and releases everybody.
  void watch(const std::stop_token& stop) {
    std::mutex sleep;
    std::condition_variable_any wake;
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(sleep);
        wake.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
      }
      for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        const std::optional<std::string> stuck = look(*members_[rank]);
        if (stuck) fail("rank " + std::to_string(rank) + ": " + *stuck);
      }
    }
  }

  std::optional<std::string> look(Member& member) const {
    const std::lock_guard lock(member.mutex);
    if (member.under_way.empty()) return std::nullopt;
    cudaSetDevice(member.ordinal);  // else asking makes a context on GPU 0
    member.retire();
    if (member.communicator == nullptr || member.under_way.empty()) return std::nullopt;
    ncclResult_t state = ncclSuccess;
    UnderWay& oldest = member.under_way.front();
    if (!oldest.since && is_past(oldest.begun)) oldest.since = Clock::now();
    const std::string what = "collective #" + std::to_string(oldest.number) + ", " + oldest.what;
    if (nccl().async_error(member.communicator, &state) != ncclSuccess ||
        (state != ncclSuccess && state != ncclInProgress)) {
      return what + ": " + nccl().error_string(state);
    }
    if (!oldest.since || Clock::now() - *oldest.since < timeout_) return std::nullopt;
    return what + ", did not end within " + std::to_string(timeout_.count()) + " ms";
  }

  std::chrono::milliseconds timeout_;
  ncclUniqueId id_{};
  std::vector<std::unique_ptr<Member>> members_;
  std::mutex mutex_;  // guards failure_
  std::optional<std::string> failure_;
  std::jthread watchdog_;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(NcclGroup& group, int rank, Device& device)
      : group_(group), rank_(rank), device_(device) {}
  ~NcclCommunicator() override { group_.close(rank_, std::uncaught_exceptions() > 0); }

  int rank() const override { return rank_; }
  int size() const override { return group_.ranks(); }
  std::string link() const override { return "nccl"; }
  void run(StreamId stream, const Collective& collective, Timing* timing) override {
    check_collective(collective, size());
    const Call call{collective.kind,
                    collective.op,
                    collective.purpose,
                    {collective.segments.begin(), collective.segments.end()}};
    device_.enqueue(
        stream, describe(call), [&](Stream target) { group_.run(rank_, call, target); }, timing);
  }

 private:
  NcclGroup& group_;
  int rank_;
  Device& device_;
};

std::unique_ptr<Communicator> NcclGroup::join(Device& device, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  Member& mine = *members_[rank];
  const std::lock_guard lock(mine.mutex);
  mine.ordinal = device.ordinal();
  const ncclResult_t status = nccl().init_rank(&mine.communicator, ranks(), id_, rank, &config);
  if (status != ncclInProgress) check(status, "ncclCommInitRank");
  settle(rank, "rank " + std::to_string(rank) + ", ncclCommInitRank");
  return std::make_unique<NcclCommunicator>(*this, rank, device);
}

}  // namespace

std::unique_ptr<RankGroup> make_nccl_process_group(const Launch& launch,
                                                   std::chrono::milliseconds timeout) {
  setenv("NCCL_COMM_ID", launch.rendezvous.c_str(), 1);  // read by ncclGetUniqueId on every rank
  return std::make_unique<NcclGroup>(launch.ranks, timeout);
}

std::unique_ptr<RankGroup> make_nccl_group(int ranks, std::chrono::milliseconds timeout) {
  return std::make_unique<NcclGroup>(ranks, timeout);
}

}  // namespace zl::cuda
