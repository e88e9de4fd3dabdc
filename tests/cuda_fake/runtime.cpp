// Devices, streams, events and copies of the fake runtime.
#include "tests/cuda_fake/runtime.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/threads/failures.h"
#include "core/threads/host_stream.h"

struct CUstream_st {
  CUstream_st(unsigned seed, int on) : device(on), random(seed) {}

  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    const auto pauses = random() % 8;
    const auto task = [this, pauses, each = std::move(work)] {
      for (unsigned i = 0; i < pauses; ++i) std::this_thread::yield();
      each();
      --queued;
    };
    ++queued;
    thread.enqueue(task, nullptr);
  }

  const int device;
  std::atomic<int> queued{0};
  std::mutex mutex;  // several threads may enqueue
  std::minstd_rand random;
  zl::HostStream thread{{}};
};

struct CUevent_st {
  // When a stream came to the mark; 0: not yet. Outlives the stream and the event.
  struct Mark {
    std::atomic<std::int64_t> passed_ns{0};
    zl::Waiter waiter;
    void pass() {
      passed_ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
      waiter.notify();
    }
    void wait() {
      waiter.wait([this] { return passed_ns > 0; });
    }
  };

  CUevent_st(int on, bool timing) : device(on), is_timed(timing) {}
  void set(CUstream_st* stream) {
    auto next = std::make_shared<Mark>();
    stream->push([next] { next->pass(); });
    const std::lock_guard lock(mutex_);
    mark_ = std::move(next);
  }
  // nullptr: never recorded.
  std::shared_ptr<Mark> mark() const {
    const std::lock_guard lock(mutex_);
    return mark_;
  }

  const int device;
  const bool is_timed;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

namespace zl::cuda::fake {
namespace {

std::atomic<int> gpus{-1};  // nobody has asked yet
std::atomic<std::int64_t> events{0};
thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::mutex mutex;  // guards what follows
std::set<int> touched;
std::map<CUstream_st*, std::shared_ptr<CUstream_st>> streams;
std::string failure;
std::atomic<bool> failed{false};
std::atomic<std::int64_t> called{0}, failing{0}, launched{0};
std::atomic<bool> is_lasting{false};
std::atomic<int> room{std::numeric_limits<int>::max()};  // on a stream

void fail(const std::string& why) {
  const std::lock_guard lock(mutex);
  if (failed) return;
  failure = "unspecified launch failure: " + why;
  failed = true;
}

}  // namespace

int gpu_count() {
  if (gpus < 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const std::string list = visible == nullptr ? "0,1,2,3" : visible;
    gpus = list.empty() ? 0 : static_cast<int>(1 + std::count(list.begin(), list.end(), ','));
  }
  return gpus;
}
Gpus::Gpus(int count) : before_(gpu_count()) { gpus = count; }
Gpus::~Gpus() { gpus = before_; }

FullQueue::FullQueue(int works) { room = works; }
FullQueue::~FullQueue() { room = std::numeric_limits<int>::max(); }

std::int64_t events_made() { return events; }
int current_device() { return device; }
int device_of(Stream stream) { return stream->device; }
std::set<int> touched_devices() {
  const std::lock_guard lock(mutex);
  return touched;
}

cudaError_t report(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t begin(bool can_fail) {
  {
    const std::lock_guard lock(mutex);
    touched.insert(device);
  }
  if (++called == failing) {
    if (is_lasting) fail("injected");
    if (!is_lasting && can_fail) return report(cudaErrorUnknown);
  }
  return failed ? report(cudaErrorLaunchFailure) : cudaSuccess;
}

void wait_for_device() {
  std::vector<std::shared_ptr<CUstream_st>> all;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [handle, stream] : streams) {
      if (stream->device == device) all.push_back(stream);
    }
  }
  for (const auto& stream : all) stream->thread.wait(stream->thread.last());
}

void enqueue(Stream stream, std::function<void()> work) {
  stream->push([each = std::move(work)] {
    if (failed) return;
    try {
      each();
    } catch (...) {
      fail(message_of(std::current_exception()));
    }
  });
}

bool has_failed() { return failed; }
void reset() {
  const std::lock_guard lock(mutex);
  touched.clear();
  failed = false;
  called = failing = 0;
  last_error = cudaSuccess;
}

void inject(const Injection& injection) {
  failing = injection.first_failing;
  is_lasting = injection.lasting;
}
std::int64_t calls() { return called; }
std::int64_t launches() { return launched; }
void count_launch() { ++launched; }

}  // namespace zl::cuda::fake

namespace fake = zl::cuda::fake;

// Returns from the calling function when the device has failed.
#define ZL_FAKE_BEGIN(...) \
  if (const cudaError_t begun = fake::begin(__VA_ARGS__); begun != cudaSuccess) return begun

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake::gpu_count();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int ordinal) {
  if (ordinal < 0 || ordinal >= fake::gpu_count()) return fake::report(cudaErrorInvalidDevice);
  fake::device = ordinal;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t last = fake::last_error;
  if (!fake::failed) fake::last_error = cudaSuccess;
  return last;
}
cudaError_t cudaPeekAtLastError() { return fake::last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  thread_local std::string text;
  const std::lock_guard lock(fake::mutex);
  if (error == cudaErrorLaunchFailure) return (text = fake::failure).c_str();
  text = "the fake runtime's error " + std::to_string(static_cast<int>(error));
  return text.c_str();
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure" : "fake";
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 3;  // multiprocessors: few, so that grids wrap around
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ZL_FAKE_BEGIN();
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (ordinal < 0 || ordinal >= fake::gpu_count()) return fake::report(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, fake::kDeviceName);
  properties->totalGlobalMem = fake::memory_of_each();
  properties->major = 9;
  properties->multiProcessorCount = 3;
  properties->l2CacheSize = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  fake::wait_for_device();
  return fake::begin(false);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static std::atomic<unsigned> seed{1};
  ZL_FAKE_BEGIN();
  const auto made = std::make_shared<CUstream_st>(++seed, fake::device);
  *stream = made.get();
  const std::lock_guard lock(fake::mutex);
  fake::streams[made.get()] = made;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::shared_ptr<CUstream_st> last;  // runs what is left, without the lock
  const std::lock_guard lock(fake::mutex);
  last = std::move(fake::streams.extract(stream).mapped());
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  ZL_FAKE_BEGIN(false);
  return stream->thread.idle() ? cudaSuccess : fake::report(cudaErrorNotReady);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->thread.wait(stream->thread.last());  // after a failure too: what runs may still end
  return fake::begin(false);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ZL_FAKE_BEGIN();
  if (const auto mark = event->mark()) stream->push([mark] { mark->wait(); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  ZL_FAKE_BEGIN();
  const fake::Reach source = fake::reach_of(from), target = fake::reach_of(to);
  const bool inside = source == fake::Reach::device && target == fake::Reach::device;
  const bool is_told = kind == cudaMemcpyDefault || inside == (kind == cudaMemcpyDeviceToDevice);
  if (!is_told || !fake::fits(from, bytes) || !fake::fits(to, bytes)) {
    return fake::report(cudaErrorInvalidValue);
  }
  if (source == fake::Reach::pageable) {
    const auto* first = static_cast<const std::byte*>(from);
    fake::enqueue(stream, [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  } else {
    fake::enqueue(stream, [=] { std::memmove(to, from, bytes); });
  }
  return target == fake::Reach::pageable ? cudaStreamSynchronize(stream) : cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  ZL_FAKE_BEGIN();
  if (!zl::cuda::fake::gpu_reaches(to, static_cast<std::int64_t>(bytes))) {
    return fake::report(cudaErrorInvalidValue);
  }
  fake::enqueue(stream, [=] { fake::fill_memory(to, value, bytes); });
  return cudaSuccess;
}
// On the legacy stream, which does not wait for non-blocking streams.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  ZL_FAKE_BEGIN();
  if (!fake::fits(from, bytes) || !fake::fits(to, bytes)) {
    return fake::report(cudaErrorInvalidValue);
  }
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  ZL_FAKE_BEGIN();
  if (!fake::fits(to, bytes)) return fake::report(cudaErrorInvalidValue);
  fake::fill_memory(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ZL_FAKE_BEGIN();
  ++fake::events;
  *event = new CUevent_st(fake::device, (flags & cudaEventDisableTiming) == 0);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ZL_FAKE_BEGIN();
  if (event->device != stream->device) return fake::report(cudaErrorInvalidResourceHandle);
  while (stream->queued >= fake::room) std::this_thread::yield();
  event->set(stream);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto mark = event->mark()) mark->wait();
  return fake::begin(false);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  ZL_FAKE_BEGIN(false);
  const auto mark = event->mark();
  return mark == nullptr || mark->passed_ns > 0 ? cudaSuccess : fake::report(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  ZL_FAKE_BEGIN();
  const auto first = start->mark(), last = stop->mark();
  if (!start->is_timed || !stop->is_timed || !first || !last) {
    return fake::report(cudaErrorInvalidResourceHandle);
  }
  if (first->passed_ns == 0 || last->passed_ns == 0) return fake::report(cudaErrorNotReady);
  *milliseconds = static_cast<float>(last->passed_ns - first->passed_ns) * 1e-6F;
  return cudaSuccess;
}
}
