// Whether this machine can run the CUDA backend, and what it has.
// Ownership: values. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zl::cuda {

// Of a rank: 40 MiB for ops on the compute stream (cuBLASLt asks for 32 MiB on Hopper) and 8 MiB
// for each other stream. Allocated from the rank's pool and lent to the device.
inline constexpr std::int64_t kWorkspace = std::int64_t{64} << 20;

// "" when the backend can run here, otherwise the reason and the fix: no driver, a driver that is
// too old, no device, a device below compute capability 8.0, no cuBLASLt. Looked up once.
const std::string& availability();
int device_count();  // 0 without a driver

struct GpuDescription {
  std::string name;         // "NVIDIA H200"
  std::int64_t memory = 0;  // bytes
  int multiprocessors = 0;
  int capability = 0;  // 90 for 9.0
};
// The first GPU and the others, as CUDA counts them; none when availability() says why not.
std::vector<GpuDescription> describe_gpus();

// Of the CUDA that the driver runs, "13.0"; "none" without a driver.
std::string driver_version();

// Versions such as "13.0" and "2.28.9", or why there is none; attention: describe_attention().
struct SoftwareDescription {
  std::string driver, runtime, cublaslt, nccl, attention;
};
SoftwareDescription describe_software();

}  // namespace zl::cuda
