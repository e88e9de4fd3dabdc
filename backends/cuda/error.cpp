#include "backends/cuda/error.h"

#include <cuda_runtime_api.h>

#include "core/base/error.h"

namespace zl::cuda {

std::string reason(int status) {
  const auto error = static_cast<cudaError_t>(status);
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

void check(int status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorCode::failed, std::string(call) + ": " + reason(status));
}

}  // namespace zl::cuda
