// Kernels of the host shim on the fake runtime's streams.
#include "tests/cuda_fake/runtime.h"

namespace zl::cuda::host {

// Declared by tests/cuda_host/shim.h, which cannot be included beside CUDA's headers.
void start(Stream stream, std::function<void()> grid);

// As launch() does on a GPU: an earlier error of the thread, or a stream of another GPU, is
// refused.
void start(Stream stream, std::function<void()> grid) {
  if (fake::device_of(stream) != fake::current_device())
    fake::report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = fake::begin(); status != cudaSuccess) fake::report(status);
  if (const cudaError_t status = cudaPeekAtLastError(); status != cudaSuccess) {
    throw Error(ErrorCode::failed, std::string("kernel launch: ") + cudaGetErrorString(status));
  }
  fake::count_launch();
  fake::enqueue(stream, std::move(grid));
}

}  // namespace zl::cuda::host
