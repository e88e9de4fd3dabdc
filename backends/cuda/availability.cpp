#include "backends/cuda/availability.h"

#include <cuda_runtime_api.h>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/error.h"
#include "backends/cuda/nccl_library.h"
#include "core/base/error.h"

namespace zl::cuda {
namespace {

constexpr int kLowestCapability = 80;

// CUDA's 13020 is "13.2".
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string no_device_reason(cudaError_t status) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  cudaGetLastError();
  if (driver == 0) {
    return "no NVIDIA driver: libcuda.so.1 was not found or does not start (" + reason(status) +
           "); install the driver of your GPU, or give the container access to it "
           "(docker run --gpus all)";
  }
  if (status == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is too old: it runs CUDA " + cuda_version(driver) +
           ", this build needs " + cuda_version(CUDART_VERSION) + "; update the driver";
  }
  return "no CUDA device: " + reason(status) + "; check nvidia-smi and CUDA_VISIBLE_DEVICES";
}

std::string find_reason() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status != cudaSuccess || count == 0) {
    return no_device_reason(status == cudaSuccess ? cudaErrorNoDevice : status);
  }
  cudaDeviceProp device{};
  if (const cudaError_t found = cudaGetDeviceProperties(&device, 0); found != cudaSuccess) {
    cudaGetLastError();
    return "GPU 0 does not answer: " + reason(found);
  }
  if (device.major * 10 + device.minor < kLowestCapability) {
    return std::string(device.name) + " has compute capability " + std::to_string(device.major) +
           "." + std::to_string(device.minor) + "; 8.0 (Ampere) or newer is needed";
  }
  try {
    cublaslt();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string nccl_version() {
  int number = 0;
  try {
    nccl().get_version(&number);
  } catch (const Error& error) {
    return error.what();
  }
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

std::string cublaslt_version() {
  try {
    const std::size_t number = cublaslt().get_version();  // 130100: 13.1.0
    return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
           std::to_string(number % 100);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

const std::string& availability() {
  static const std::string why = find_reason();
  return why;
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  cudaGetLastError();
  return count;
}

std::vector<GpuDescription> describe_gpus() {
  std::vector<GpuDescription> gpus;
  if (!availability().empty()) return gpus;
  for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
    cudaDeviceProp device{};
    check(cudaGetDeviceProperties(&device, ordinal), "cudaGetDeviceProperties");
    gpus.push_back({device.name, static_cast<std::int64_t>(device.totalGlobalMem),
                    device.multiProcessorCount, device.major * 10 + device.minor});
  }
  return gpus;
}

std::string driver_version() {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  cudaGetLastError();
  return driver == 0 ? "none" : cuda_version(driver);
}

SoftwareDescription describe_software() {
  return {driver_version(), cuda_version(CUDART_VERSION), cublaslt_version(), nccl_version(),
          describe_attention()};
}

}  // namespace zl::cuda
