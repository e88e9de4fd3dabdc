#include "backends/cuda/first_failure.h"

#include <cuda_runtime_api.h>

namespace zl::cuda {

void FirstFailure::refuse() const {
  if (!happened()) return;
  throw Error(ErrorCode::failed, "the GPU takes no more work after the first failure: " + message_);
}

void FirstFailure::report(const std::string& what, const Error& error, Stream any) {
  cudaGetLastError();
  const cudaError_t now = cudaStreamQuery(any);
  cudaGetLastError();
  std::string message = "rank " + std::to_string(rank_) + ", " + what + ": " + error.what();
  if (now != cudaSuccess && now != cudaErrorNotReady) {
    if (!synchronous_) {
      message +=
          "; kernels run later than they are called, so it may be an earlier one: run again "
          "with ZEROLAB_CUDA_SYNC=1 to see which";
    }
    message_ = message;
  }
  throw Error(error.code(), message);
}

}  // namespace zl::cuda
