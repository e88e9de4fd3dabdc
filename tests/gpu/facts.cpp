#include "tests/gpu/facts.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include "backends/cuda/device.h"
#include "core/base/error.h"
#include "results/environment.h"

namespace zl::gpu {
namespace {

using Json = nlohmann::ordered_json;

// A function of a shared library that is loaded or can be; nullptr otherwise.
template <class F>
F* symbol(const char* library, const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    void* handle = dlopen(library, RTLD_LAZY);
    if (handle != nullptr) found = dlsym(handle, name);
  }
  return reinterpret_cast<F*>(found);
}

constexpr const char* kManagement = "libnvidia-ml.so.1";

bool management_ready() {
  auto* start = symbol<int()>(kManagement, "nvmlInit_v2");
  return start != nullptr && start() == 0;
}

Json driver_version() {
  auto* version =
      symbol<int(char*, unsigned)>(kManagement, "nvmlSystemGetDriverVersion");
  char text[96] = {};
  if (!management_ready() || version == nullptr || version(text, sizeof text) != 0) return nullptr;
  return text;
}

Json cublas_version() {
  auto* version = symbol<std::size_t()>("libcublasLt.so.13", "cublasLtGetVersion");
  return version == nullptr ? Json() : Json(version());
}

Json nccl_version() {
  auto* version = symbol<int(int*)>("libnccl.so.2", "ncclGetVersion");
  int number = 0;
  if (version == nullptr || version(&number) != 0) return nullptr;
  return number;
}

}  // namespace

nlohmann::ordered_json machine_facts() {
  cudaDeviceProp device{};
  const cudaError_t status = cudaGetDeviceProperties(&device, 0);
  if (status != cudaSuccess) {
    throw Error(ErrorCode::unavailable,
                std::string("cudaGetDeviceProperties: ") + cudaGetErrorString(status));
  }
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const Environment host = detect_environment();
  return {{"device",
           {{"name", device.name},
            {"compute_capability",
             std::to_string(device.major) + "." + std::to_string(device.minor)},
            {"multiprocessors", device.multiProcessorCount},
            {"memory_bytes", device.totalGlobalMem},
            {"l2_bytes", device.l2CacheSize},
            {"devices_in_machine", cuda::device_count()}}},
          {"driver", driver_version()},
          {"driver_cuda", driver},
          {"runtime", runtime},
          {"libraries", {{"cublasLt", cublas_version()}, {"nccl", nccl_version()}}},
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
  auto* handle_of = symbol<int(unsigned, void**)>(kManagement, "nvmlDeviceGetHandleByIndex_v2");
  auto* memory_of = symbol<int(void*, Memory*)>(kManagement, "nvmlDeviceGetMemoryInfo");
  void* device = nullptr;
  Memory memory{};
  if (!management_ready() || handle_of == nullptr || memory_of == nullptr) return {};
  if (handle_of(0, &device) != 0 || memory_of(device, &memory) != 0) return {};
  return static_cast<std::int64_t>(memory.used);
}

}  // namespace zl::gpu
