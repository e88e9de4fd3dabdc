// cuDNN's attention on a GPU: against the float64 reference, in pieces, and with one pass by cuDNN
// and the other by zerolab's kernels, which must mean the same by the statistics between them.
#include "backends/cuda/cudnn_attention.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/ops/attention.h"
#include "core/ops/op.h"
#include "tests/conformance/cases.h"
#include "tests/gpu/cuda_harness.h"

namespace zl::test {
namespace {

constexpr int kRounds = 2;  // each compiles plans of its own

cuda::ExecContext context(bool deterministic) {
  cuda::ExecContext with = lent_device().context(StreamId::compute);
  with.deterministic = deterministic;
  return with;
}

void by_zerolab(const Op& op) {
  std::visit([](const auto& each) { cuda::execute(each, context(true)); }, op);
}

// The backward's delta is zerolab's scratch, which the reference fills in and cuDNN does not need.
void fill_delta(const AttentionBackward& op) {
  by_zerolab(op);
  const TensorView& result = op.dqkv.q.matrix;
  ASSERT_EQ(cudaMemsetAsync(result.data, 0xFF, static_cast<std::size_t>(result.bytes()),
                            lent_device().context(StreamId::compute).stream),
            cudaSuccess);
}

class ByCudnn {
 public:
  explicit ByCudnn(bool deterministic, double workspace_share = 1)
      : deterministic_(deterministic), workspace_share_(workspace_share) {}

  void operator()(const Op& op) {
    cuda::ExecContext with = context(deterministic_);
    if (const auto* backward = std::get_if<AttentionBackward>(&op)) {
      fill_delta(*backward);
      const bool can_be_cut = backward->shape.batch * backward->shape.kv_heads > 1;
      if (workspace_share_ < 1 && can_be_cut) with.workspace_bytes = part_of_need(*backward);
    }
    EXPECT_TRUE(cudnn_->run(op, with)) << "cuDNN has no plan; ZEROLAB_ATTENTION=cudnn says why";
  }

 private:
  // Of what the plan for the whole op needs.
  std::int64_t part_of_need(const AttentionBackward& op) const {
    const cuda::CudnnProblem problem{op.shape, op.qkv.dtype(), op.scale, true, deterministic_};
    const cuda::CudnnHandle handle;
    cuda::CudnnGraph whole(problem, {0, 0, op.shape.batch, op.shape.kv_heads}, handle.capability());
    whole.plan(handle);
    return static_cast<std::int64_t>(workspace_share_ * static_cast<double>(whole.workspace()));
  }

  bool deterministic_;
  double workspace_share_;
  std::shared_ptr<cuda::CudnnAttention> cudnn_ =
      std::make_shared<cuda::CudnnAttention>(cuda::AttentionKernels::cudnn);
};

// Memory of the GPU like a tensor's, not its values.
class Likeness {
 public:
  explicit Likeness(const TensorView& of) : view_(of) {
    void* data = nullptr;
    if (cudaMalloc(&data, static_cast<std::size_t>(of.bytes())) != cudaSuccess) {
      throw Error(ErrorCode::failed, "no room for a tensor on the GPU");
    }
    view_.data = static_cast<std::byte*>(data);
  }
  ~Likeness() { cudaFree(view_.data); }
  Likeness(const Likeness&) = delete;
  Likeness& operator=(const Likeness&) = delete;

  const TensorView& view() const { return view_; }

 private:
  TensorView view_;
};

// A backward over what the forward of one of the two leaves, not over the reference's results,
// which it may only read.
RunOp after_forward(RunOp forward, RunOp backward) {
  return [=](const Op& op) {
    auto b = std::get<AttentionBackward>(op);
    const Likeness out(b.out), lse(b.lse);
    b.out = out.view(), b.lse = lse.view();
    forward(AttentionForward{b.qkv, b.out, b.lse, b.shape, b.scale, b.dropout});
    backward(b);
    ASSERT_EQ(cudaStreamSynchronize(lent_device().context(StreamId::compute).stream), cudaSuccess);
  };
}

class CudnnAttentionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::cudnn_missing().empty()) GTEST_SKIP() << cuda::cudnn_missing();
  }

  // The case of `op` that cuDNN takes, each trial `times` times by `run`, bit for bit the same.
  template <class T>
  static void check(const std::string& name, const RunOp& run, int times) {
    for (const Case& one : cases_of(Tag<T>{})) {
      if (one.name.find("whole_tiles") == std::string::npos) continue;
      for (const DType dtype : one.types) {
        for (std::uint64_t round = 0; round < kRounds; ++round) {
          std::vector<std::unique_ptr<Harness>> all;
          for (int i = 0; i < times; ++i) all.push_back(make_cuda_harness(name, 0, run));
          SCOPED_TRACE(std::string(name_of(dtype)) + ", round " + std::to_string(round));
          run_case(one, dtype, test_seed() + round, all);
          if (HasFailure()) return;
        }
      }
    }
  }
};

TEST_F(CudnnAttentionTest, ForwardMatchesReferenceTheSameTwice) {
  check<AttentionForward>("cuDNN", ByCudnn(true), 2);
}

TEST_F(CudnnAttentionTest, DeterministicBackwardMatchesReferenceTheSameTwice) {
  check<AttentionBackward>("cuDNN, deterministic", ByCudnn(true), 2);
}

TEST_F(CudnnAttentionTest, FastBackwardMatchesReference) {
  check<AttentionBackward>("cuDNN", ByCudnn(false), 1);
}

TEST_F(CudnnAttentionTest, BackwardInPiecesMatchesReference) {
  check<AttentionBackward>("cuDNN in pieces", ByCudnn(false, 0.75), 1);
}

TEST_F(CudnnAttentionTest, BackwardAfterZerolabsForwardMatchesReference) {
  check<AttentionBackward>("cuDNN after zerolab", after_forward(by_zerolab, ByCudnn(false)), 1);
}

TEST_F(CudnnAttentionTest, ZerolabsBackwardAfterItsForwardMatchesReference) {
  check<AttentionBackward>("zerolab after cuDNN", after_forward(ByCudnn(true), by_zerolab), 2);
}

}  // namespace
}  // namespace zl::test
