#include "tests/gpu/facts.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include "backends/cuda/availability.h"
#include "core/base/error.h"
#include "results/environment.h"

namespace zl::gpu {
namespace {

using Json = nlohmann::ordered_json;

// A function of the driver's management library (NVML); nullptr where there is none.
template <class F>
F* symbol(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
  return reinterpret_cast<F*>(library == nullptr ? nullptr : dlsym(library, name));
}

bool management_ready() {
  auto* start = symbol<int()>("nvmlInit_v2");
  return start != nullptr && start() == 0;
}

Json driver_version() {
  auto* version = symbol<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  char text[96] = {};
  if (!management_ready() || version == nullptr || version(text, sizeof text) != 0) return nullptr;
  return text;
}

}  // namespace

nlohmann::ordered_json machine_facts() {
  cudaDeviceProp device{};
  const cudaError_t status = cudaGetDeviceProperties(&device, 0);
  if (status != cudaSuccess) {
    throw Error(ErrorCode::unavailable,
                std::string("cudaGetDeviceProperties: ") + cudaGetErrorString(status));
  }
  const cuda::SoftwareDescription software = cuda::describe_software();
  const Environment host = detect_environment();
  return {
      {"device",
       {{"name", device.name},
        {"compute_capability", std::to_string(device.major) + "." + std::to_string(device.minor)},
        {"multiprocessors", device.multiProcessorCount},
        {"memory_bytes", device.totalGlobalMem},
        {"l2_bytes", device.l2CacheSize},
        {"devices_visible", cuda::device_count()}}},
      {"driver", driver_version()},
      {"cuda", {{"driver", software.driver}, {"runtime", software.runtime}}},
      {"libraries",
       {{"cublaslt", software.cublaslt},
        {"nccl", software.nccl},
        {"attention", software.attention}}},
      {"host",
       {{"cpu", host.cpu}, {"cores", host.cores}, {"os", host.os}, {"kernel", host.kernel}}},
      {"compiler", host.compiler},
      {"commit", host.commit}};
}

std::optional<std::int64_t> driver_used_bytes() {
  // NVML reference, nvmlMemory_t: total, free, used.
  struct Memory {
    unsigned long long total, free, used;
  };
  auto* handle_of = symbol<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  auto* memory_of = symbol<int(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
  void* device = nullptr;
  Memory memory{};
  if (!management_ready() || handle_of == nullptr || memory_of == nullptr) return {};
  if (handle_of(0, &device) != 0 || memory_of(device, &memory) != 0) return {};
  return static_cast<std::int64_t>(memory.used);
}

std::int64_t free_bytes() {
  std::size_t free = 0, total = 0;
  const cudaError_t status = cudaMemGetInfo(&free, &total);
  if (status != cudaSuccess) {
    throw Error(ErrorCode::failed, std::string("cudaMemGetInfo: ") + cudaGetErrorString(status));
  }
  return static_cast<std::int64_t>(free);
}

}  // namespace zl::gpu
