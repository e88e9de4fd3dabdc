#include "backends/cuda/same_gpu_communicator.h"

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cuda/collectives/reduce.h"
#include "backends/cuda/error.h"
#include "backends/cuda/same_gpu_move.h"
#include "core/threads/call_text.h"
#include "core/threads/thread_group.h"

namespace zl::cuda {
namespace {

// A point in one stream of one rank that other ranks' streams wait for.
class Mark {
 public:
  Mark() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Mark() { cudaEventDestroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  void set(Stream stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait(Stream stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Of one rank, for each stream: when its tensors may be read and written, and when it is done with
// those of the others.
struct Marks {
  std::array<Mark, kStreams> ready, done;
  std::array<Stream, kStreams> streams{};  // of its latest exchange
};

// A group's ranks and their marks.
class Meeting {
 public:
  explicit Meeting(std::shared_ptr<ThreadGroup> group)
      : group_(std::move(group)), marks_(index(group_->ranks())) {}

  // Called by each rank before anything else.
  void join(int rank) { marks_[index(rank)] = std::make_unique<Marks>(); }
  ThreadGroup& group() const { return *group_; }

  // Host threads meet twice: when all calls are posted and when all work is enqueued. Between the
  // meetings each rank enqueues its part behind everybody's `ready`; after the second one its
  // stream waits for everybody's `done`. A mark is set again only after all have waited for it.
  void run(int rank, StreamId stream, const ExecContext& context, const Call& call) {
    const auto channel = static_cast<std::size_t>(stream);
    marks_[index(rank)]->ready[channel].set(context.stream);
    group_->run(rank, stream, call, [&](const ThreadGroup::Calls& calls) {
      for (const auto& other : marks_) other->ready[channel].wait(context.stream);
      move_on_gpu(rank, context, calls);
      marks_[index(rank)]->done[channel].set(context.stream);
    });
    for (const auto& other : marks_) other->done[channel].wait(context.stream);
  }

  // While the sender's thread waits, the receiver's enqueues the copy behind the sender's `ready`
  // and lets the sender's stream wait for its own `done`.
  void exchange(int rank, StreamId stream, const ExecContext& context,
                std::span<const Message> messages) {
    const auto channel = static_cast<std::size_t>(stream);
    Marks& mine = *marks_[index(rank)];
    mine.streams[channel] = context.stream;
    mine.ready[channel].set(context.stream);
    group_->exchange(rank, stream, messages, [&](const Message& send, const Message& receive) {
      Marks& theirs = *marks_[index(receive.peer)];
      theirs.ready[channel].wait(context.stream);
      copy_on_gpu(context, receive.tensor.data, send.tensor);
      mine.done[channel].set(context.stream);
      mine.done[channel].wait(theirs.streams[channel]);
    });
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  std::shared_ptr<ThreadGroup> group_;
  std::vector<std::unique_ptr<Marks>> marks_;
};

// All groups of a run.
class SameGpuGroup final : public RankGroup {
 public:
  SameGpuGroup(int ranks, std::chrono::milliseconds timeout)
      : world_(std::make_shared<Meeting>(std::make_shared<ThreadGroup>(ranks, timeout))) {}

  std::unique_ptr<Communicator> join(Device& device, int rank) override;
  void leave(int rank, const std::string& why) override { world_->group().leave(rank, why); }
  void finish(int rank) override { world_->group().end(rank); }

  // One for each group of threads; all live as long as this.
  std::shared_ptr<Meeting> meeting_of(const std::shared_ptr<ThreadGroup>& group) {
    const std::lock_guard lock(mutex_);
    auto& meeting = split_[group.get()];
    if (meeting == nullptr) meeting = std::make_shared<Meeting>(group);
    return meeting;
  }

 private:
  std::shared_ptr<Meeting> world_;
  std::mutex mutex_;  // guards the one below
  std::map<const ThreadGroup*, std::shared_ptr<Meeting>> split_;
};

class SameGpuCommunicator final : public Communicator {
 public:
  SameGpuCommunicator(SameGpuGroup& all, std::shared_ptr<Meeting> meeting, int rank, Device& device)
      : all_(all), meeting_(std::move(meeting)), rank_(rank), device_(device) {
    meeting_->join(rank);
  }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->group().ranks(); }
  std::string link() const override { return "same-gpu"; }

  void run(StreamId stream, const Collective& collective, Timing* timing) override {
    check_collective(collective, size());
    const Call call = call_of(collective);
    device_.enqueue(
        stream, describe(call),
        [&](Stream) { meeting_->run(rank_, stream, device_.context(stream), call); }, timing);
  }

  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override {
    check_messages(messages, rank_, size());
    device_.enqueue(
        stream, describe(messages),
        [&](Stream) { meeting_->exchange(rank_, stream, device_.context(stream), messages); },
        timing);
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    const auto [group, rank] = meeting_->group().split(rank_, color, key);
    return std::make_unique<SameGpuCommunicator>(all_, all_.meeting_of(group), rank, device_);
  }

 private:
  SameGpuGroup& all_;
  std::shared_ptr<Meeting> meeting_;
  int rank_;
  Device& device_;
};

std::unique_ptr<Communicator> SameGpuGroup::join(Device& device, int rank) {
  return std::make_unique<SameGpuCommunicator>(*this, world_, rank, device);
}

}  // namespace

std::unique_ptr<RankGroup> make_same_gpu_group(int ranks, std::chrono::milliseconds timeout) {
  if (ranks > kMaxSharingRanks) {
    throw Error(ErrorCode::invalid, "ranks: at most " + std::to_string(kMaxSharingRanks) +
                                        " can share one GPU, not " + std::to_string(ranks));
  }
  return std::make_unique<SameGpuGroup>(ranks, timeout);
}

}  // namespace zl::cuda
