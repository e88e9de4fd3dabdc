#include "backends/cuda/device.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "backends/cuda/blas.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/error.h"
#include "backends/cuda/event_ring.h"
#include "backends/cuda/timer.h"
#include "core/ops/matmul.h"
#include "core/ops/op.h"
#include "core/threads/failures.h"

// The toolkit's headers without a library; a package of its own in some distributions.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static void nvtxRangePushA(const char*) {}
static void nvtxRangePop() {}
#endif

namespace zl::cuda {
namespace {

constexpr std::int64_t kOtherWorkspace = std::int64_t{8} << 20;  // of each stream but compute
static_assert(kWorkspace - (static_cast<std::int64_t>(kDeviceStreams) - 1) * kOtherWorkspace >=
              std::int64_t{32} << 20);

std::size_t index_of(StreamId stream) { return static_cast<std::size_t>(stream); }

EventId make_event(StreamId stream, std::int64_t number) {
  return number * static_cast<EventId>(kStreams) + static_cast<EventId>(stream);
}

bool debug_synchronous() {
  const char* value = std::getenv("ZEROLAB_CUDA_SYNC");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

// "gemm [64,32] bf16, [32,16] bf16, [64,16] bf16".
std::string describe(const Op& op) {
  std::string text = op_name(op.index());
  std::visit(
      [&](const auto& each) {
        each.visit([&, first = true](const TensorView& view, Access) mutable {
          if (view.empty()) return;
          text += (first ? " " : ", ") + view.shape.text() + " " + name_of(view.dtype);
          first = false;
        });
      },
      op);
  return text;
}

struct ProfilerRange {
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

std::byte* map_host(std::int64_t bytes) {
  void* slab = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return slab == MAP_FAILED ? nullptr : static_cast<std::byte*>(slab);
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
  if (space == MemorySpace::host) return map_host(bytes);
  void* slab = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const cudaError_t status = space == MemorySpace::device
                                 ? cudaMalloc(&slab, size)
                                 : cudaHostAlloc(&slab, size, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the pool reports it; launches must not trip over it
    return nullptr;
  }
  check(status, space == MemorySpace::device ? "cudaMalloc" : "cudaHostAlloc");
  return static_cast<std::byte*>(slab);
}

void Device::release(MemorySpace space, std::byte* slab, std::int64_t bytes) {
  drain();
  if (space == MemorySpace::device) {
    cudaFree(slab);
  } else if (space == MemorySpace::pinned_host) {
    cudaFreeHost(slab);
  } else {
    munmap(slab, static_cast<std::size_t>(bytes));
  }
  cudaGetLastError();  // after a failed kernel nothing can be given back
}

void Device::lend_workspace(std::byte* memory, std::int64_t bytes) {
  if (memory == nullptr) drain();
  ZL_CHECK(memory == nullptr || bytes >= kWorkspace, "a lent workspace has the size asked for");
  std::byte* next = memory;
  for (std::size_t i = 0; i < kDeviceStreams; ++i) {
    const std::int64_t others = static_cast<std::int64_t>(kDeviceStreams) - 1;
    const std::int64_t size =
        i == index_of(StreamId::compute) ? bytes - others * kOtherWorkspace : kOtherWorkspace;
    workspaces_[i] = next;
    workspace_bytes_[i] = memory == nullptr ? 0 : size;
    if (memory != nullptr) next += size;
  }
}

ExecContext Device::context(StreamId stream) const {
  const std::size_t i = index_of(stream);
  ExecContext context;
  context.stream = streams_[i];
  context.workspace = workspaces_[i];
  context.workspace_bytes = workspace_bytes_[i];
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
    fail(describe_work(), error);
  }
}

// A held product is of the part before. (Not so in leave(), which must not throw.)
void Device::enter(Phase phase, int unit) {
  if (failure_.empty()) enqueue_held();
  const std::string name = name_of(phase);
  nvtxRangePushA(unit < 0 ? name.c_str() : (name + " " + std::to_string(unit)).c_str());
}

void Device::leave() { nvtxRangePop(); }

void Device::run(StreamId stream, const Op& op, Timing* timing) {
  if (is_host(stream)) {
    ZL_CHECK(run_on_host_ != nullptr, "this device was made with a way to run ops on the host");
    return run_host(
        stream, [run = run_on_host_, op] { run(op); }, timing);
  }
  const auto* gemm = std::get_if<Gemm>(&op);
  if (stream != StreamId::compute || synchronous_) return enqueue_op(stream, op, timing);
  if (held_ && fuse_with_held(op, timing)) return;
  if (gemm == nullptr || !may_fuse(*gemm)) return enqueue_op(stream, op, timing);
  enqueue_held();
  held_ = {*gemm, timing};
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
  if (!held_) return;
  const HeldProduct held = *held_;
  held_.reset();
  enqueue_op(StreamId::compute, held.gemm, held.timing);
}

bool Device::fuse_with_held(const Op& op, Timing* timing) {
  const ExecContext with = context(StreamId::compute);
  const std::optional<Product> product = fuse(held_->gemm, op, with.deterministic);
  if (!product || !blas_->supports(*product, with.workspace_bytes)) return false;
  const HeldProduct held = *held_;
  held_.reset();
  const auto describe_both = [&] { return describe(held.gemm) + " with " + describe(op); };
  guarded(
      StreamId::compute, "gemm with epilogue", describe_both,
      [&](Stream stream) { blas_->run(*product, stream, with.workspace, with.workspace_bytes); },
      held.timing);
  if (timing != nullptr) {
    guarded(
        StreamId::compute, op_name(op.index()), describe_both, [](Stream) {}, timing);
  }
  return true;
}

void Device::copy(StreamId stream, std::byte* destination, const std::byte* source,
                  std::int64_t bytes, Timing* timing) {
  guarded(
      stream, "copy", [&] { return "copy of " + std::to_string(bytes) + " bytes"; },
      [&](Stream target) {
        if (bytes == 0) return;
        check(cudaMemcpyAsync(destination, source, static_cast<std::size_t>(bytes),
                              cudaMemcpyDefault, target),
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

// A failed kernel makes CUDA refuse all that follows; a refused launch or a wrong argument does
// not.
void Device::fail(const std::string& what, const Error& error) {
  cudaGetLastError();
  const cudaError_t now = cudaStreamQuery(streams_[0]);
  cudaGetLastError();
  std::string message = "rank " + std::to_string(rank_) + ", " + what + ": " + error.what();
  if (now != cudaSuccess && now != cudaErrorNotReady) {
    if (!synchronous_) {
      message +=
          "; kernels run later than they are called, so it may be an earlier one: run again "
          "with ZEROLAB_CUDA_SYNC=1 to see which";
    }
    failure_ = message;
  }
  throw Error(error.code(), message);
}

void Device::refuse_after_failure() {
  workers_.rethrow();
  if (failure_.empty()) return;
  throw Error(ErrorCode::failed, "the GPU takes no more work after the first failure: " + failure_);
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
  } catch (const Error&) {  // nobody can want the result: fail() has kept what is lasting
  }
  if (!has_work()) return;
  // The work may be a collective whose other ranks will never come.
  if (std::uncaught_exceptions() > 0 && on_failure_) on_failure_("an exception ended it");
  workers_.synchronize();
  for (const Stream stream : streams_) cudaStreamSynchronize(stream);
}

}  // namespace zl::cuda
