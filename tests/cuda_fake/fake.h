// A CUDA runtime made of threads, for tests without a GPU: streams are threads that pause at
// random, device memory is mapped host memory full of NaN, an op or a copy that gets memory which a
// GPU (or the host) cannot reach is an error. What the calls promise is in CUDA's manual.
// Ownership: owns what cudaMalloc and the like made. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "backends/cuda/kernel/stream.h"
#include "core/ops/op.h"

namespace zl::cuda::fake {

inline constexpr const char* kDeviceName = "dry run (no GPU)";

enum class Reach { device, pinned, pageable };
Reach reach_of(const void* address);
// Whether [address, address + bytes) lies in one piece of memory that the GPU reaches.
bool gpu_reaches(const void* address, std::int64_t bytes);

// Of each GPU, in bytes; at the start 64 GiB.
void set_memory(std::int64_t bytes);
// While it lives the machine has `count` GPUs; else 4, or as many as CUDA_VISIBLE_DEVICES names.
struct Gpus {
  explicit Gpus(int count);
  ~Gpus();
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

 private:
  int before_;
};

int current_device();             // of the calling thread
int device_of(Stream stream);     // where it was made
std::set<int> touched_devices();  // those on which a call would have made a context since reset()

// Any work on a stream's thread. What it throws is the device's failure, as a kernel's would be:
// all later calls return cudaErrorLaunchFailure, whose text is the exception's, until reset().
void enqueue(Stream stream, std::function<void()> work);
bool has_failed();
// Forgets the failure and the touched devices; only while nothing runs.
void reset();

// Runtime calls that can fail, and products and collectives, counted from reset(); from the n-th on
// (1: the first) they fail when `first_failing` is not 0: one call, or all that follow as after a
// failed kernel.
struct Injection {
  std::int64_t first_failing = 0;
  bool lasting = false;
};
void inject(const Injection& injection);
std::int64_t calls();

// cudaEventCreate and the like so far.
std::int64_t events_made();

// Kernels that were launched on any stream so far.
std::int64_t launches();
void count_launch();

// For the host stream: the CPU's code after a look at the op's addresses.
void run_on_host(const Op& op, int threads);

// Refuses an op with memory of that reach.
void check_reach(const Op& op, Reach forbidden, const char* whose);

// While it lives a call at the end of an NCCL communicator's life does not end: a finalized one
// stays in progress, the others do not return.
enum class NcclEnd { none, finalize, destroy, abort };
struct NcclHangs {
  explicit NcclHangs(NcclEnd in);
  ~NcclHangs();
  NcclHangs(const NcclHangs&) = delete;
  NcclHangs& operator=(const NcclHangs&) = delete;
};

// While it lives cudaEventRecord waits where that many works are on the stream already, as launches
// do on a GPU (for a thousand).
struct FullQueue {
  explicit FullQueue(int works);
  ~FullQueue();
  FullQueue(const FullQueue&) = delete;
  FullQueue& operator=(const FullQueue&) = delete;
};

}  // namespace zl::cuda::fake
