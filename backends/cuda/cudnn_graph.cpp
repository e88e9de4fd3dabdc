// What cudnn_graph.h says through cuDNN's frontend; compiled where CMake finds its headers.
#include "backends/cuda/cudnn_graph.h"

#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>

#include <exception>
#include <mutex>
#include <unordered_map>

#include "backends/cuda/error.h"
#include "backends/cuda/library.h"
#include "core/base/error.h"
#include "core/ops/attention.h"

// The frontend calls the library through this.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace zl::cuda {
namespace {

namespace fe = cudnn_frontend;

std::string open_library() {
  try {
    const SharedLibrary library("cuDNN", "libcudnn.so.9",
                                "install cuDNN 9 or `pip install nvidia-cudnn-cu13`, or name the "
                                "folder in LD_LIBRARY_PATH");
    fe::cudnn_dlhandle = library.handle();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

[[noreturn]] void fail(const std::string& step, const std::string& why) {
  throw Error(ErrorCode::failed, "cuDNN attention, " + step + ": " + why);
}
void expect(fe::error_t status, const char* step) {
  if (status.is_bad()) fail(step, status.get_message());
}
void expect(cudnnStatus_t status, const char* step) {
  if (status != CUDNN_STATUS_SUCCESS) fail(step, fe::detail::get_error_string(status));
}

// The frontend throws where a function of the library is missing.
template <class Work>
void guarded(const char* step, const Work& work) {
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(step, error.what());
  }
}

enum Id : std::int64_t { q = 1, k, v, out, lse, dout, dq, dk, dv };

cudnnHandle_t handle_of(const CudnnHandle& handle) {
  return static_cast<cudnnHandle_t>(handle.get());
}

}  // namespace

const std::string& cudnn_missing() {
  static const std::string why = open_library();
  return why;
}

std::string cudnn_version() {
  const auto number = static_cast<std::int64_t>(fe::detail::get_backend_version());
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

CudnnHandle::CudnnHandle() {
  if (!cudnn_missing().empty()) throw Error(ErrorCode::unavailable, cudnn_missing());
  int device = 0;
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
  };
  check(cudaGetDevice(&device), "cudaGetDevice");
  capability_ = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                attribute(cudaDevAttrComputeCapabilityMinor);
  cudnnHandle_t made = nullptr;
  guarded("cudnnCreate", [&] { expect(fe::detail::create_handle(&made), "cudnnCreate"); });
  handle_ = made;
}

CudnnHandle::~CudnnHandle() { fe::detail::destroy_handle(handle_of(*this)); }

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

struct CudnnGraph::Frontend {
  fe::graph::Graph graph;
  std::int64_t workspace = 0;

  Frontend(const CudnnProblem& problem, const AttentionPiece& size, int capability);

 private:
  void describe(fe::graph::Tensor_attributes& tensor, Id id, HeadPart part) const;
  Tensor input(Id id, HeadPart part);
  void output(const Tensor& tensor, Id id, HeadPart part) const;
  void add_forward(float scale);
  void add_backward(float scale, bool deterministic);

  AttentionShape shape_;
  AttentionPiece size_;
  fe::DataType_t type_;
};

CudnnGraph::Frontend::Frontend(const CudnnProblem& problem, const AttentionPiece& size,
                               int capability)
    : shape_(problem.shape),
      size_(size),
      type_(problem.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF) {
  graph.set_io_data_type(type_)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(capability);
  const auto scale = static_cast<float>(problem.scale);
  problem.backward ? add_backward(scale, problem.deterministic) : add_forward(scale);
}

void CudnnGraph::Frontend::describe(fe::graph::Tensor_attributes& tensor, Id id,
                                    HeadPart part) const {
  const HeadTensor heads = head_tensor(shape_, size_, part);
  tensor.set_uid(id)
      .set_dim({heads.shape.begin(), heads.shape.end()})
      .set_stride({heads.stride.begin(), heads.stride.end()})
      .set_data_type(part == HeadPart::statistics ? fe::DataType_t::FLOAT : type_);
}

Tensor CudnnGraph::Frontend::input(Id id, HeadPart part) {
  fe::graph::Tensor_attributes tensor;
  describe(tensor, id, part);
  return graph.tensor(tensor);
}

void CudnnGraph::Frontend::output(const Tensor& tensor, Id id, HeadPart part) const {
  describe(*tensor, id, part);
  tensor->set_output(true);
}

// Causal: no key after the query, counted from the first of both.
void CudnnGraph::Frontend::add_forward(float scale) {
  auto attributes = fe::graph::SDPA_attributes()
                        .set_name("attention")
                        .set_generate_stats(true)
                        .set_attn_scale(scale)
                        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                        .set_diagonal_band_right_bound(0);
  const auto [o, statistics] =
      graph.sdpa(input(Id::q, HeadPart::query), input(Id::k, HeadPart::key),
                 input(Id::v, HeadPart::value), std::move(attributes));
  output(o, Id::out, HeadPart::out);
  output(statistics, Id::lse, HeadPart::statistics);
}

void CudnnGraph::Frontend::add_backward(float scale, bool deterministic) {
  auto attributes = fe::graph::SDPA_backward_attributes()
                        .set_name("attention_backward")
                        .set_attn_scale(scale)
                        .set_deterministic_algorithm(deterministic)
                        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                        .set_diagonal_band_right_bound(0);
  const auto [query, key, value] = graph.sdpa_backward(
      input(Id::q, HeadPart::query), input(Id::k, HeadPart::key), input(Id::v, HeadPart::value),
      input(Id::out, HeadPart::out), input(Id::dout, HeadPart::out),
      input(Id::lse, HeadPart::statistics), std::move(attributes));
  output(query, Id::dq, HeadPart::query);
  output(key, Id::dk, HeadPart::key);
  output(value, Id::dv, HeadPart::value);
}

CudnnGraph::CudnnGraph(const CudnnProblem& problem, const AttentionPiece& size, int capability)
    : problem_(problem) {
  if (!cudnn_missing().empty()) throw Error(ErrorCode::unavailable, cudnn_missing());
  guarded("describing it", [&] {
    frontend_ = std::make_unique<Frontend>(problem, size, capability);
    expect(frontend_->graph.validate(), "validating it");
  });
}

CudnnGraph::~CudnnGraph() = default;

void CudnnGraph::check_support(const std::string& properties) {
  fe::graph::Graph& graph = frontend_->graph;
  guarded("asking for support", [&] {
    const auto device = std::make_shared<fe::DeviceProperties>();
    expect(device->deserialize({properties.begin(), properties.end()}), "reading properties");
    graph.set_device_properties(device);
    expect(graph.build_operation_graph(), "building it");
    expect(graph.create_execution_plans({fe::HeurMode_t::A}), "choosing an algorithm");
    expect(graph.check_support(), "asking for support");
  });
}

void CudnnGraph::plan(const CudnnHandle& handle) {
  fe::graph::Graph& graph = frontend_->graph;
  guarded("planning it", [&] {
    expect(graph.build_operation_graph(handle_of(handle)), "building it");
    expect(graph.create_execution_plans({fe::HeurMode_t::A}), "choosing an algorithm");
    expect(graph.check_support(), "asking for support");
    expect(graph.build_plans(), "compiling it");
    expect(graph.get_workspace_size(frontend_->workspace), "asking for its workspace");
  });
}

std::int64_t CudnnGraph::workspace() const { return frontend_->workspace; }

void CudnnGraph::run(const CudnnHandle& handle, Stream stream, const AttentionTensors& tensors,
                     const AttentionPiece& piece, std::byte* workspace) {
  const auto at = [&](std::byte* tensor, HeadPart part) -> void* {
    const std::size_t element = part == HeadPart::statistics ? 4 : size_of(problem_.dtype);
    const std::int64_t offset = head_tensor(problem_.shape, piece, part).offset;
    return tensor + offset * static_cast<std::int64_t>(element);
  };
  std::unordered_map<std::int64_t, void*> pointers = {
      {Id::q, at(tensors.qkv, HeadPart::query)},
      {Id::k, at(tensors.qkv, HeadPart::key)},
      {Id::v, at(tensors.qkv, HeadPart::value)},
      {Id::out, at(tensors.out, HeadPart::out)},
      {Id::lse, at(tensors.lse, HeadPart::statistics)}};
  if (problem_.backward) {
    pointers.insert({{Id::dout, at(tensors.dout, HeadPart::out)},
                     {Id::dq, at(tensors.dqkv, HeadPart::query)},
                     {Id::dk, at(tensors.dqkv, HeadPart::key)},
                     {Id::dv, at(tensors.dqkv, HeadPart::value)}});
  }
  guarded("running it", [&] {
    expect(fe::detail::set_stream(handle_of(handle), stream), "cudnnSetStream");
    expect(frontend_->graph.execute(handle_of(handle), pointers, workspace), "running it");
  });
}

}  // namespace zl::cuda
