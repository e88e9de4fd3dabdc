// One CUDA device as a rank sees it: four streams of the GPU and three of the host, events, slabs
// and ops. Several ranks may share one GPU: each has streams of its own.
// Ownership: owns streams, events and the cuBLASLt handle; slabs belong to whoever reserved them;
// the workspace is lent. Threads: made, used and destroyed on one rank's thread, whose current
// device it sets.
// How it schedules, and why so: "The device" in README.md.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/availability.h"
#include "backends/cuda/first_failure.h"
#include "backends/cuda/held_product.h"
#include "backends/cuda/ops/ops.h"
#include "backends/cuda/workspaces.h"
#include "core/device/device.h"
#include "core/ops/matmul.h"
#include "core/threads/host_streams.h"

namespace zl::cuda {

class Blas;
class CudnnAttention;
class EventRing;
class Timer;

// Runs a validated op over host memory, on the calling thread and its team.
using RunOnHost = std::function<void(const Op& op)>;

class Device final : public zl::Device {
 public:
  // Told when work of the host fails, on its thread, and when an exception ends the rank while work
  // is under way, before anything waits for that work: it may be a collective whose other ranks
  // will never come.
  using OnFailure = HostStream::OnFailure;

  // ordinal: CUDA's number of the GPU. rank: for messages. run_on_host: for the host stream's ops.
  // host_memory: DeviceProperties'.
  // Throws Error{unavailable}, Error{invalid} (attention_kernels()).
  Device(int ordinal, int rank, OnFailure on_failure = {}, bool deterministic = true,
         RunOnHost run_on_host = {}, std::int64_t host_memory = 0);
  ~Device() override;

  DeviceProperties properties() const override;
  std::byte* reserve(MemorySpace space, std::int64_t bytes) override;
  // First waits for the work of every stream, which may still use the slab.
  void release(MemorySpace space, std::byte* slab, std::int64_t bytes) override;
  void lend_workspace(std::byte* memory, std::int64_t bytes) override;

  void enter(Phase phase, int unit) override;
  void leave() override;
  void run(StreamId stream, const Op& op, Timing* timing) override;
  void copy(StreamId stream, std::byte* destination, const std::byte* source, std::int64_t bytes,
            Timing* timing) override;
  void run_host(StreamId stream, std::function<void()> work, Timing* timing) override;
  EventId record(StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  void synchronize(StreamId stream) override;
  double read(StreamId stream, ProbeKind what, const TensorView& scalar) override;

  int ordinal() const { return ordinal_; }
  int rank() const { return rank_; }
  Stream stream(StreamId stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  // What an op on that stream runs with: the stream and its part of the workspace.
  ExecContext context(StreamId stream) const;

  // Anything that enqueues on a stream (a communicator's kernels): checked, named, timed and shown
  // to profilers like an op. `what` says it in messages, "all_reduce of 3 tensors".
  void enqueue(StreamId stream, const std::string& what, const std::function<void(Stream)>& work,
               Timing* timing);
  // Waits for the host's streams and returns their failures that nobody has been told of.
  std::vector<std::exception_ptr> finish() { return workers_.finish(); }

 private:
  void open();
  void close();
  // Runs `work`, timed and shown to profilers as `name`. What fails is reported as describe().
  template <class Describe, class Work>
  void guarded(StreamId stream, const char* name, const Describe& describe, const Work& work,
               Timing* timing);
  void enqueue_op(StreamId stream, const Op& op, Timing* timing);
  void enqueue_held();
  void enqueue_fused(const HeldProduct::Fused& fused, const Op& op, Timing* timing);
  void refuse_after_failure();
  bool has_work() const;
  void wait_for_worker(StreamId source, std::int64_t mark);
  void drain();

  int ordinal_, rank_;
  OnFailure on_failure_;
  RunOnHost run_on_host_;
  bool deterministic_, synchronous_ = false;
  std::int64_t host_memory_;
  int multiprocessors_ = 0;
  FirstFailure failure_;
  std::array<Stream, kDeviceStreams> streams_{};
  Workspaces workspaces_;
  std::array<std::unique_ptr<EventRing>, kDeviceStreams> events_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Blas> blas_;
  std::unique_ptr<CudnnAttention> cudnn_;
  HeldProduct held_;          // of the compute stream
  double* scalar_ = nullptr;  // pinned: where read() puts what it reads
  HostStreams workers_;       // the host's streams
};

}  // namespace zl::cuda
