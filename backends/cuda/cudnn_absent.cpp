// cudnn_graph.h without cuDNN's frontend: all of it says what is missing.
#include "backends/cuda/cudnn_graph.h"
#include "core/base/error.h"

namespace zl::cuda {

const std::string& cudnn_missing() {
  static const std::string why =
      "this build has no cuDNN: CMake found no cudnn_frontend.h; name its folder in "
      "ZEROLAB_CUDNN_FRONTEND (`pip install nvidia-cudnn-frontend`) and build again";
  return why;
}
std::string cudnn_version() { return "none"; }

struct CudnnGraph::Frontend {};

CudnnHandle::CudnnHandle() { throw Error(ErrorCode::unavailable, cudnn_missing()); }
CudnnHandle::~CudnnHandle() = default;
CudnnGraph::CudnnGraph(const CudnnProblem&, const AttentionPiece&, int) {
  throw Error(ErrorCode::unavailable, cudnn_missing());
}
CudnnGraph::~CudnnGraph() = default;
void CudnnGraph::check_support(const std::string&) {}
void CudnnGraph::plan(const CudnnHandle&) {}
std::int64_t CudnnGraph::workspace() const { return 0; }
void CudnnGraph::run(const CudnnHandle&, Stream, const AttentionTensors&, const AttentionPiece&,
                     std::byte*) {}

}  // namespace zl::cuda
