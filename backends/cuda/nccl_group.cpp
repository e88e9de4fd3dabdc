#include "backends/cuda/nccl_group.h"

#include <cuda_runtime_api.h>

#include <condition_variable>

#include "backends/cuda/nccl_calls.h"
#include "core/threads/failures.h"

namespace zl::cuda {
namespace {

std::string name_of(int rank, const char* call) {
  return "rank " + std::to_string(rank) + ", " + call;
}

bool is_past(const EventRing::Event& event) {
  const cudaError_t status = cudaEventQuery(event.get());
  if (status == cudaErrorNotReady) cudaGetLastError();
  return status == cudaSuccess;
}

EventRing::Event mark(NcclGroup::Member& member, Stream stream) {
  return member.events.share(member.events.record(stream));
}

// Gives back the events of calls that have ended.
void retire(NcclGroup::Member& member) {
  auto& calls = member.under_way;
  while (!calls.empty() && calls.front().done && is_past(calls.front().done)) calls.pop_front();
}

}  // namespace

NcclGroup::NcclGroup(int ranks, std::chrono::milliseconds timeout)
    : timeout_(timeout), ranks_(ranks) {
  for (auto& rank : ranks_) rank = std::make_unique<Rank>();
  check(nccl().get_unique_id(&id_), "ncclGetUniqueId");
  watchdog_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclGroup::~NcclGroup() {
  watchdog_.request_stop();
  watchdog_.join();
}

void NcclGroup::leave(int rank, const std::string& why) {
  fail("rank " + std::to_string(rank) + " has left: " + why);
}

// Nothing is under way any more on this rank, but other ranks may still need it: what they need
// ends here, with a deadline, so that nothing is left to wait for in close().
void NcclGroup::finish(int rank) {
  if (has_failed()) throw_failure(rank, "has enqueued its last call");
  Rank& mine = of(rank);
  const std::string what = name_of(rank, "ncclCommFinalize");
  const std::lock_guard lock(mine.mutex);
  const WatchedCall watched = watch_call(what, timeout_);
  for (auto member = mine.members.rbegin(); member != mine.members.rend(); ++member) {
    if (member->communicator == nullptr) throw_failure(rank, "ends its groups");
    check_started(nccl().finalize(member->communicator), what);
  }
  for (auto member = mine.members.rbegin(); member != mine.members.rend(); ++member) {
    settle(rank, *member, what + " of a group of " + std::to_string(member->ranks));
  }
}

// Marks are made without the lock: where the stream's queue is full they wait, perhaps for a call
// that does not end until the watchdog has aborted it.
void NcclGroup::call(int rank, Member& member, const std::string& noun, const std::string& what,
                     Stream stream, const Enqueue& enqueue) {
  const EventRing::Event begun = mark(member, stream);
  {
    const std::lock_guard lock(of(rank).mutex);
    if (member.communicator == nullptr) throw_failure(rank, "calls " + what);
    retire(member);
    enqueue(member.communicator);
    settle(rank, member, what);
    const std::string number = std::to_string(++member.calls);
    member.under_way.push_back({noun + " #" + number + ", " + what, begun, nullptr, {}});
  }
  EventRing::Event done = mark(member, stream);
  const std::lock_guard lock(of(rank).mutex);
  member.under_way.back().done = std::move(done);
}

// NCCL splits a communicator only when nothing of it is under way.
NcclGroup::Member& NcclGroup::split(int rank, Member& parent, int color, int key) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::string what = name_of(rank, "ncclCommSplit");
  std::unique_lock lock(of(rank).mutex);
  drain(lock, rank, parent);
  const WatchedCall watched = watch_call(what, timeout_);
  Member& made = of(rank).members.emplace_back();
  check_started(nccl().split(parent.communicator, color, key, &made.communicator, &config), what);
  settle(rank, parent, what);
  ZL_CHECK(made.communicator != nullptr, what + " made no communicator");
  settle(rank, made, what);
  check(nccl().rank_of(made.communicator, &made.rank), "ncclCommUserRank");
  check(nccl().size_of(made.communicator, &made.ranks), "ncclCommCount");
  return made;
}

void NcclGroup::drain(std::unique_lock<std::mutex>& lock, int rank, Member& member) {
  while (true) {
    if (member.communicator == nullptr || has_failed()) throw_failure(rank, "splits its group");
    retire(member);
    if (member.under_way.empty()) return;
    lock.unlock();  // the watchdog looks
    std::this_thread::yield();
    lock.lock();
  }
}

void NcclGroup::close(int rank, bool has_failed) {
  Rank& mine = of(rank);
  const std::lock_guard lock(mine.mutex);
  for (Member& member : mine.members) {
    member.under_way.clear();  // the rank's own thread destroys its events
    member.events = {};
  }
  if (has_failed) return abort(rank);
  const WatchedCall watched = watch_call(name_of(rank, "ncclCommDestroy"), timeout_);
  for (auto member = mine.members.rbegin(); member != mine.members.rend(); ++member) {
    if (member->communicator != nullptr) nccl().destroy(member->communicator);
    member->communicator = nullptr;
  }
}

void NcclGroup::abort(int rank) {
  const WatchedCall watched = watch_call(name_of(rank, "ncclCommAbort"), timeout_);
  for (Member& member : of(rank).members) {
    if (member.communicator != nullptr) nccl().abort(member.communicator);
    member.communicator = nullptr;
  }
}

// A non-blocking call has been taken over when the communicator is no longer in progress. That can
// need the other ranks (who connect in their first call), one of which may have left. The rank's
// mutex is held: nobody else could abort.
void NcclGroup::settle(int rank, Member& member, const std::string& what) {
  const Clock::time_point deadline = Clock::now() + timeout_;
  ncclResult_t state = ncclInProgress;
  while (true) {
    check(nccl().async_error(member.communicator, &state), "ncclCommGetAsyncError");
    if (state != ncclInProgress) break;
    if (has_failed()) {
      abort(rank);
      throw_failure(rank, "calls " + what);
    }
    if (Clock::now() > deadline) {
      abort(rank);
      throw Error(ErrorCode::failed, what + ": not all " + std::to_string(ranks_.size()) +
                                         " ranks have come to it within " +
                                         std::to_string(timeout_.count()) + " ms");
    }
    std::this_thread::yield();
  }
  check(state, what);
}

// Ends everybody's calls; the first reason counts.
void NcclGroup::fail(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = reason;
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::lock_guard lock(ranks_[rank]->mutex);
    abort(static_cast<int>(rank));
  }
}

bool NcclGroup::has_failed() {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void NcclGroup::throw_failure(int rank, const std::string& does) {
  const std::lock_guard lock(mutex_);
  throw RankLeft("rank " + std::to_string(rank) + " " + does + ", but " +
                 failure_.value_or("its communicator is closed"));
}

// Names a call that does not end, and releases everybody.
void NcclGroup::watch(const std::stop_token& stop) {
  std::mutex sleep;
  std::condition_variable_any wake;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(sleep);
      wake.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::optional<std::string> stuck = look(*ranks_[rank]);
      if (stuck) fail("rank " + std::to_string(rank) + ": " + *stuck);
    }
  }
}

std::optional<std::string> NcclGroup::look(Rank& rank) const {
  const std::lock_guard lock(rank.mutex);
  for (Member& member : rank.members) {
    if (member.under_way.empty()) continue;
    cudaSetDevice(rank.ordinal);  // else asking makes a context on GPU 0
    if (auto stuck = look(member)) return stuck;
  }
  return std::nullopt;
}

std::optional<std::string> NcclGroup::look(Member& member) const {
  retire(member);
  if (member.communicator == nullptr || member.under_way.empty()) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  UnderWay& oldest = member.under_way.front();
  if (!oldest.since && is_past(oldest.begun)) oldest.since = Clock::now();
  if (nccl().async_error(member.communicator, &state) != ncclSuccess ||
      (state != ncclSuccess && state != ncclInProgress)) {
    return oldest.what + ": " + nccl().error_string(state);
  }
  if (!oldest.since || Clock::now() - *oldest.since < timeout_) return std::nullopt;
  return oldest.what + ", did not end within " + std::to_string(timeout_.count()) +
         " ms: not all of its " + std::to_string(member.ranks) +
         " ranks have come, or one has stopped";
}

}  // namespace zl::cuda
