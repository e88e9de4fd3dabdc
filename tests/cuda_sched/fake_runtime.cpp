// CUDA's runtime calls, as far as the backend makes them; what they promise is in CUDA's manual.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/device/host_stream.h"
#include "tests/cuda_sched/fake.h"

struct CUstream_st {
  explicit CUstream_st(unsigned seed) : random(seed) {}

  void push(std::function<void()> work) {
    const auto pauses = random() % 8;
    const auto task = [pauses, each = std::move(work)] {
      for (unsigned i = 0; i < pauses; ++i) std::this_thread::yield();
      each();
    };
    thread.enqueue(task, nullptr);
  }

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

  void set(CUstream_st* stream) {
    auto next = std::make_shared<Mark>();
    stream->push([next] { next->pass(); });
    const std::lock_guard lock(mutex_);
    mark_ = std::move(next);
  }
  std::shared_ptr<Mark> mark() const {
    const std::lock_guard lock(mutex_);
    return mark_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

namespace zl::cuda::fake {
namespace {

struct Memory {
  std::size_t bytes = 0;
  Reach reach = Reach::pageable;
};
std::mutex mutex;
std::map<const std::byte*, Memory> memories;  // under mutex

cudaError_t map_memory(void** address, std::size_t bytes, Reach reach) {
  *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*address == MAP_FAILED) return cudaErrorMemoryAllocation;
  const std::lock_guard lock(mutex);
  memories[static_cast<std::byte*>(*address)] = {bytes, reach};
  return cudaSuccess;
}

cudaError_t unmap_memory(void* address) {
  const std::lock_guard lock(mutex);
  const auto found = memories.find(static_cast<std::byte*>(address));
  if (found == memories.end()) return cudaErrorInvalidValue;
  munmap(address, found->second.bytes);
  memories.erase(found);
  return cudaSuccess;
}

}  // namespace

Reach reach_of(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex);
  auto after = memories.upper_bound(byte);
  if (after == memories.begin()) return Reach::pageable;
  --after;
  return byte < after->first + after->second.bytes ? after->second.reach : Reach::pageable;
}

void enqueue(Stream stream, std::function<void()> work) { stream->push(std::move(work)); }

}  // namespace zl::cuda::fake

namespace fake = zl::cuda::fake;

extern "C" {

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the fake runtime"; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "threads");
  properties->totalGlobalMem = std::size_t{1} << 40;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return fake::map_memory(address, bytes, fake::Reach::device);
}
cudaError_t cudaFree(void* address) { return fake::unmap_memory(address); }
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  return fake::map_memory(address, bytes, fake::Reach::pinned);
}
cudaError_t cudaFreeHost(void* address) { return fake::unmap_memory(address); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static std::atomic<unsigned> seed{1};
  *stream = new CUstream_st(++seed);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream->thread.idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->thread.wait(stream->thread.last());
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream->push([mark = event->mark()] { mark->wait(); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (fake::reach_of(from) == fake::Reach::pageable) {
    const auto* first = static_cast<const std::byte*>(from);
    stream->push([to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  } else {
    stream->push([=] { std::memmove(to, from, bytes); });
  }
  if (fake::reach_of(to) == fake::Reach::pageable) return cudaStreamSynchronize(stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->set(stream);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event->mark()->wait();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event->mark()->passed_ns > 0 ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  const std::int64_t ns = stop->mark()->passed_ns - start->mark()->passed_ns;
  *milliseconds = static_cast<float>(ns) * 1e-6F;
  return cudaSuccess;
}
}
