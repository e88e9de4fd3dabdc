#include "backends/cuda/same_gpu_communicator.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cuda/collectives/reduce.h"
#include "backends/cuda/error.h"
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
};

std::byte* offset_by(std::byte* data, std::int64_t elements, DType dtype) {
  return data + elements * static_cast<std::int64_t>(size_of(dtype));
}

class SameGpuGroup;

class SameGpuCommunicator final : public Communicator {
 public:
  SameGpuCommunicator(SameGpuGroup& group, int rank, Device& device)
      : group_(group), rank_(rank), device_(device) {}

  int rank() const override { return rank_; }
  int size() const override;
  std::string link() const override { return "same-gpu"; }
  void run(StreamId stream, const Collective& collective, Timing* timing) override;

 private:
  SameGpuGroup& group_;
  int rank_;
  Device& device_;
};

class SameGpuGroup final : public RankGroup {
 public:
  SameGpuGroup(int ranks, std::chrono::milliseconds timeout)
      : meeting_(ranks, timeout), marks_(ranks) {}

  std::unique_ptr<Communicator> join(Device& device, int rank) override {
    marks_[rank] = std::make_unique<Marks>();
    return std::make_unique<SameGpuCommunicator>(*this, rank, device);
  }
  void leave(int rank, const std::string& why) override { meeting_.leave(rank, why); }
  int ranks() const { return meeting_.ranks(); }

  // Host threads meet twice: when all calls are posted and when all work is enqueued. Between the
  // meetings each rank enqueues its part behind everybody's `ready`; after the second one its
  // stream waits for everybody's `done`. A mark is set again only after all have waited for it.
  void run(int rank, StreamId stream, Stream target, const ExecContext& context, const Call& call) {
    const auto channel = static_cast<std::size_t>(stream);
    marks_[rank]->ready[channel].set(target);
    meeting_.run(rank, stream, call, [&](const ThreadGroup::Calls& calls) {
      for (const auto& other : marks_) other->ready[channel].wait(target);
      enqueue(rank, context, calls);
      marks_[rank]->done[channel].set(target);
    });
    for (const auto& other : marks_) other->done[channel].wait(target);
  }

 private:
  void enqueue(int rank, const ExecContext& context, const ThreadGroup::Calls& calls) const {
    const Call& mine = *calls[rank];
    for (std::size_t i = 0; i < mine.segments.size(); ++i) {
      switch (mine.kind) {
        case CollectiveKind::all_reduce:
          all_reduce(rank, context, calls, i);
          break;
        case CollectiveKind::reduce_scatter:
          reduce_scatter(rank, context, calls, i);
          break;
        case CollectiveKind::all_gather:
          all_gather(rank, context, calls, i);
          break;
        case CollectiveKind::broadcast:
          copy(context, mine.segments[i].destination.data, calls[0]->segments[i].source);
          break;
        case CollectiveKind::all_to_all:
          all_to_all(rank, context, calls, i);
          break;
      }
    }
  }

  // Each rank reduces its share of the elements and writes it to everyone: nobody else reads or
  // writes those, so tensors may be reduced in place.
  void all_reduce(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                  std::size_t segment) const {
    constexpr std::int64_t kGrain = 1024;  // shares begin at whole packs
    const Call& mine = *calls[rank];
    const TensorView& view = mine.segments[segment].source;
    const std::int64_t grains = (view.count() + kGrain - 1) / kGrain;
    const std::int64_t begin = std::min(view.count(), grains * rank / ranks() * kGrain);
    const std::int64_t end = std::min(view.count(), grains * (rank + 1) / ranks() * kGrain);
    RankPointers sources, destinations;
    for (int other = 0; other < ranks(); ++other) {
      const Segment& theirs = calls[other]->segments[segment];
      sources.at[other] = offset_by(theirs.source.data, begin, view.dtype);
      destinations.at[other] = offset_by(theirs.destination.data, begin, view.dtype);
    }
    reduce(context, view.dtype, mine.op, sources, ranks(), destinations, ranks(), end - begin);
  }

  void reduce_scatter(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                      std::size_t segment) const {
    const Call& mine = *calls[rank];
    const TensorView& chunk = mine.segments[segment].destination;
    RankPointers sources, destination;
    destination.at[0] = chunk.data;
    for (int other = 0; other < ranks(); ++other) {
      sources.at[other] =
          offset_by(calls[other]->segments[segment].source.data, rank * chunk.count(), chunk.dtype);
    }
    reduce(context, chunk.dtype, mine.op, sources, ranks(), destination, 1, chunk.count());
  }

  void all_gather(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                  std::size_t segment) const {
    const TensorView& whole = calls[rank]->segments[segment].destination;
    for (int other = 0; other < ranks(); ++other) {
      const TensorView& chunk = calls[other]->segments[segment].source;
      copy(context, offset_by(whole.data, other * chunk.count(), chunk.dtype), chunk);
    }
  }

  void all_to_all(int rank, const ExecContext& context, const ThreadGroup::Calls& calls,
                  std::size_t segment) const {
    const TensorView& whole = calls[rank]->segments[segment].destination;
    const std::int64_t chunk = whole.count() / ranks();
    for (int other = 0; other < ranks(); ++other) {
      const TensorView& theirs = calls[other]->segments[segment].source;
      copy(context, offset_by(whole.data, other * chunk, whole.dtype),
           theirs.flat(rank * chunk, chunk));
    }
  }

  static void copy(const ExecContext& context, std::byte* destination, const TensorView& source) {
    if (destination == source.data || source.bytes() == 0) return;
    check(cudaMemcpyAsync(destination, source.data, source.bytes(), cudaMemcpyDeviceToDevice,
                          context.stream),
          "cudaMemcpyAsync");
  }

  ThreadGroup meeting_;
  std::vector<std::unique_ptr<Marks>> marks_;
};

int SameGpuCommunicator::size() const { return group_.ranks(); }

void SameGpuCommunicator::run(StreamId stream, const Collective& collective, Timing* timing) {
  check_collective(collective, size());
  const Call call{collective.kind,
                  collective.op,
                  collective.purpose,
                  {collective.segments.begin(), collective.segments.end()}};
  device_.enqueue(
      stream, describe(call),
      [&](Stream target) { group_.run(rank_, stream, target, device_.context(stream), call); },
      timing);
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
