#include "backends/cuda/device.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "backends/cuda/blas.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/error.h"
#include "backends/cuda/event_ring.h"
#include "backends/cuda/op_text.h"
#include "backends/cuda/profiler.h"
#include "backends/cuda/slab.h"
#include "backends/cuda/timer.h"
#include "core/ops/matmul.h"
#include "core/ops/op.h"
#include "core/threads/failures.h"

namespace zl::cuda {
namespace {

std::size_t index_of(StreamId stream) { return static_cast<std::size_t>(stream); }

EventId make_event(StreamId stream, std::int64_t number) {
  return number * static_cast<EventId>(kStreams) + static_cast<EventId>(stream);
}

bool debug_synchronous() {
  const char* value = std::getenv("ZEROLAB_CUDA_SYNC");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

bool is_host(StreamId stream) { return index_of(stream) >= kDeviceStreams; }

}  // namespace

Device::Device(int ordinal, int rank, OnFailure on_failure, bool deterministic,
               RunOnHost run_on_host, std::int64_t host_memory)
    : ordinal_(ordinal),
      rank_(rank),
      on_failure_(std::move(on_failure)),
      run_on_host_(std::move(run_on_host)),
      deterministic_(deterministic),
      synchronous_(debug_synchronous()),
      host_memory_(host_memory),
      failure_(rank, synchronous_),
      timer_(std::make_unique<Timer>()),
      blas_(std::make_unique<Blas>()),
      cudnn_(std::make_unique<CudnnAttention>(attention_kernels())),
      workers_(on_failure_, [ordinal] { cudaSetDevice(ordinal); }) {
  if (!availability().empty()) throw Error(ErrorCode::unavailable, availability());
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
}

void Device::open() {
  check(cudaSetDevice(ordinal_), "cudaSetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal_),
        "cudaDeviceGetAttribute");
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  for (std::size_t i = 0; i < kDeviceStreams; ++i) {
    // Collectives first: others wait for them.
    const int priority = i == index_of(StreamId::communication) ? highest : lowest;
    check(cudaStreamCreateWithPriority(&streams_[i], cudaStreamNonBlocking, priority),
          "cudaStreamCreate");
    events_[i] = std::make_unique<EventRing>();
  }
  check(cudaHostAlloc(reinterpret_cast<void**>(&scalar_), sizeof(double), cudaHostAllocDefault),
        "cudaHostAlloc");
}

Device::~Device() {
  drain();
  close();
}

void Device::close() {
  timer_.reset();
  blas_.reset();
  cudnn_.reset();
  for (auto& ring : events_) ring.reset();
  for (const Stream stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  if (scalar_ != nullptr) cudaFreeHost(scalar_);
  cudaGetLastError();
}

DeviceProperties Device::properties() const {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, ordinal_), "cudaGetDeviceProperties");
  DeviceProperties properties;
  properties.name = device.name;
  properties.memory = static_cast<std::int64_t>(device.totalGlobalMem);
  properties.host_memory = host_memory_;
  properties.workspace = kWorkspace;
  return properties;
}

std::byte* Device::reserve(MemorySpace space, std::int64_t bytes) {
  refuse_after_failure();
  return make_slab(space, bytes);
}

void Device::release(MemorySpace space, std::byte* slab, std::int64_t bytes) {
  drain();
  free_slab(space, slab, bytes);
}

void Device::lend_workspace(std::byte* memory, std::int64_t bytes) {
  if (memory == nullptr) drain();
  workspaces_.lend(memory, bytes);
}

ExecContext Device::context(StreamId stream) const {
  const Workspace workspace = workspaces_.of(stream);
  ExecContext context;
  context.stream = streams_[index_of(stream)];
  context.workspace = workspace.memory;
  context.workspace_bytes = workspace.bytes;
  context.multiprocessors = multiprocessors_;
  context.deterministic = deterministic_;
  context.blas = blas_.get();
  return context;
}

template <class Describe, class Work>
void Device::guarded(StreamId stream, const char* name, const Describe& describe_work,
                     const Work& work, Timing* timing) {
  refuse_after_failure();
  if (stream == StreamId::compute) enqueue_held();
  const ProfilerRange range(name);
  const Stream target = streams_[index_of(stream)];
  try {
    if (timing != nullptr) timer_->start(stream, target, timing);
    work(target);
    if (timing != nullptr) timer_->stop(stream, target);
    if (synchronous_) check(cudaStreamSynchronize(target), "cudaStreamSynchronize");
  } catch (const RankLeft&) {
    if (timing != nullptr) timer_->forget(stream);
    throw;  // another rank's failure, in its own words
  } catch (const Error& error) {
    if (timing != nullptr) timer_->forget(stream);
    failure_.report(describe_work(), error, streams_[0]);
  }
}

// A held product is of the part before. (Not so in leave(), which must not throw.)
void Device::enter(Phase phase, int unit) {
  if (!failure_.happened()) enqueue_held();
  const std::string name = name_of(phase);
  ProfilerRange::begin(unit < 0 ? name.c_str() : (name + " " + std::to_string(unit)).c_str());
}

void Device::leave() { ProfilerRange::end(); }

void Device::run(StreamId stream, const Op& op, Timing* timing) {
  if (is_host(stream)) {
    ZL_CHECK(run_on_host_ != nullptr, "this device was made with a way to run ops on the host");
    return run_host(
        stream, [run = run_on_host_, op] { run(op); }, timing);
  }
  if (stream != StreamId::compute || synchronous_) return enqueue_op(stream, op, timing);
  if (const auto fused = held_.release_with(op, *blas_, context(stream))) {
    return enqueue_fused(*fused, op, timing);
  }
  const auto* gemm = std::get_if<Gemm>(&op);
  if (gemm == nullptr || !may_fuse(*gemm)) return enqueue_op(stream, op, timing);
  enqueue_held();
  held_.hold({*gemm, timing});
}

void Device::enqueue_op(StreamId stream, const Op& op, Timing* timing) {
  guarded(
      stream, op_name(op.index()), [&] { return describe(op); },
      [&](Stream) {
        const ExecContext with = context(stream);
        if (cudnn_->run(op, with)) return;
        std::visit([&](const auto& each) { execute(each, with); }, op);
      },
      timing);
}

void Device::enqueue_held() {
  const std::optional<GivenProduct> product = held_.release();
  if (product) enqueue_op(StreamId::compute, product->gemm, product->timing);
}

// Of two ops in one launch the first is given the time, the second a time of zero length.
void Device::enqueue_fused(const HeldProduct::Fused& fused, const Op& op, Timing* timing) {
  const ExecContext with = context(StreamId::compute);
  const auto describe_both = [&] { return describe(fused.first.gemm) + " with " + describe(op); };
  guarded(
      StreamId::compute, "gemm with epilogue", describe_both,
      [&](Stream stream) { blas_->run(fused.both, stream, with.workspace, with.workspace_bytes); },
      fused.first.timing);
  if (timing == nullptr) return;
  guarded(
      StreamId::compute, op_name(op.index()), describe_both, [](Stream) {}, timing);
}

void Device::copy(StreamId stream, std::byte* destination, const std::byte* source,
                  std::int64_t bytes, Timing* timing) {
  guarded(
      stream, "copy", [&] { return "copy of " + std::to_string(bytes) + " bytes"; },
      [&](Stream target) {
        if (bytes == 0) return;
        check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, target),
              "cudaMemcpyAsync");
      },
      timing);
}

void Device::run_host(StreamId stream, std::function<void()> work, Timing* timing) {
  refuse_after_failure();
  ZL_CHECK(is_host(stream), "work of the host runs on the host's streams");
  workers_.enqueue(stream, std::move(work), timing);
}

void Device::enqueue(StreamId stream, const std::string& what,
                     const std::function<void(Stream)>& work, Timing* timing) {
  guarded(
      stream, what.c_str(), [&] { return what; }, work, timing);
}

EventId Device::record(StreamId stream) {
  if (is_host(stream)) {
    refuse_after_failure();
    return make_event(stream, workers_.mark(stream));
  }
  EventId event = 0;
  guarded(
      stream, "record", [] { return "recording an event"; },
      [&](Stream target) { event = make_event(stream, events_[index_of(stream)]->record(target)); },
      nullptr);
  return event;
}

void Device::wait(StreamId stream, EventId event) {
  constexpr auto kCount = static_cast<EventId>(kStreams);
  const auto source = static_cast<StreamId>(event % kCount);
  const std::int64_t mark = event / kCount;
  if (is_host(source) && !is_host(stream)) return wait_for_worker(source, mark);
  if (is_host(stream)) {
    refuse_after_failure();
    if (is_host(source)) return workers_.wait(stream, source, mark);
    const auto passed = [event = events_[index_of(source)]->share(mark)] {
      check(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
    };
    return workers_.enqueue(stream, passed, nullptr);
  }
  guarded(
      stream, "wait", [] { return "waiting for an event"; },
      [&](Stream target) { events_[index_of(source)]->wait(target, mark); }, nullptr);
}

// All that the GPU can do meanwhile is enqueued first.
void Device::wait_for_worker(StreamId source, std::int64_t mark) {
  refuse_after_failure();
  enqueue_held();
  workers_.wait(source, mark);
  workers_.rethrow();
}

void Device::synchronize(StreamId stream) {
  if (is_host(stream)) {
    workers_.synchronize(stream);
    return workers_.rethrow();
  }
  guarded(
      stream, "synchronize", [] { return "synchronising a stream"; },
      [&](Stream target) {
        check(cudaStreamSynchronize(target), "cudaStreamSynchronize");
        timer_->resolve(target);
      },
      nullptr);
}

double Device::read(StreamId stream, ProbeKind, const TensorView& scalar) {
  ZL_CHECK(scalar.dtype == DType::f32 || scalar.dtype == DType::f64, "probes are fp32 or fp64");
  auto* bytes = reinterpret_cast<std::byte*>(scalar_);
  copy(stream, bytes, scalar.data, static_cast<std::int64_t>(size_of(scalar.dtype)), nullptr);
  synchronize(stream);
  return scalar.dtype == DType::f64 ? *scalar_ : double{*reinterpret_cast<const float*>(scalar_)};
}

void Device::refuse_after_failure() {
  workers_.rethrow();
  failure_.refuse();
}

bool Device::has_work() const {
  if (!workers_.idle()) return true;
  for (const Stream stream : streams_) {
    const cudaError_t status = stream == nullptr ? cudaSuccess : cudaStreamQuery(stream);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return true;
    }
  }
  return false;
}

void Device::drain() {
  try {
    enqueue_held();
  } catch (const Error&) {  // nobody can want the result: failure_ has kept what lasts
  }
  if (!has_work()) return;
  // The work may be a collective whose other ranks will never come.
  if (std::uncaught_exceptions() > 0 && on_failure_) on_failure_("an exception ended it");
  workers_.synchronize();
  for (const Stream stream : streams_) cudaStreamSynchronize(stream);
}

}  // namespace zl::cuda
