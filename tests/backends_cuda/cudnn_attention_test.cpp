// cuDNN's attention where no GPU is needed: how ops are cut, where cuDNN is told that heads lie,
// and whether its frontend accepts the graphs.
#include "backends/cuda/cudnn_attention.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <tuple>

#include "backends/cuda/availability.h"
#include "core/base/error.h"
#include "core/ops/attention.h"
#include "core/ops/elementwise.h"
#include "core/ops/op.h"

namespace zl::cuda {
namespace {

const AttentionShape kShapes[] = {
    {3, 64, 4, 4, 64}, {2, 128, 6, 2, 128}, {1, 64, 3, 1, 64}, {5, 64, 8, 8, 64}};

struct Asked {
  explicit Asked(const char* value) { setenv("ZEROLAB_ATTENTION", value, 1); }
  ~Asked() { unsetenv("ZEROLAB_ATTENTION"); }
};

template <class Work>
std::string error_of(ErrorCode code, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "";
}

TEST(CudnnPieces, CoverEveryHeadOnceAndKeepSequencesWholeWhereTheyFit) {
  for (const AttentionShape& shape : kShapes) {
    const std::int64_t all = shape.batch * shape.kv_heads;
    for (std::int64_t most = 1; most <= all + 1; ++most) {
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      for (const AttentionPiece& piece : cut(shape, most)) {
        EXPECT_LE(piece.batches * piece.kv_heads, most);
        EXPECT_TRUE(piece.batches == 1 || piece.kv_heads == shape.kv_heads);
        EXPECT_TRUE(piece.kv_heads == shape.kv_heads || most < shape.kv_heads);
        for (std::int64_t i = 0; i < piece.batches * piece.kv_heads; ++i) {
          const bool is_new =
              seen.insert({piece.batch + i / piece.kv_heads, piece.kv_head + i % piece.kv_heads})
                  .second;
          EXPECT_TRUE(is_new);
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), all);
      EXPECT_EQ(*seen.rbegin(), std::pair(shape.batch - 1, shape.kv_heads - 1));
    }
    EXPECT_TRUE(cut(shape, 0).empty());
  }
}

// Every element of a piece lies where AttentionForward's layout says: row (sequence, position),
// then the query heads, the key heads, the value heads.
TEST(CudnnPieces, HeadsLieWhereTheOpsTensorsHaveThem) {
  for (const AttentionShape& s : kShapes) {
    const std::int64_t group = s.heads / s.kv_heads;
    struct Part {
      HeadPart part;
      std::int64_t group, first, width;
    };
    const Part parts[] = {{HeadPart::query, group, 0, s.qkv_width()},
                          {HeadPart::key, 1, s.heads, s.qkv_width()},
                          {HeadPart::value, 1, s.heads + s.kv_heads, s.qkv_width()},
                          {HeadPart::out, group, 0, s.out_width()}};
    for (const AttentionPiece& piece : cut(s, s.batch > 2 ? 2 * s.kv_heads : 1)) {
      for (const auto& [part, per_kv, first, width] : parts) {
        const HeadTensor t = head_tensor(s, piece, part);
        ASSERT_EQ(t.shape,
                  (std::array{piece.batches, piece.kv_heads * per_kv, s.sequence, s.head_size}));
        for (std::int64_t b = 0; b < t.shape[0]; ++b) {
          for (std::int64_t h = 0; h < t.shape[1]; ++h) {
            for (const auto& [i, d] : {std::pair<std::int64_t, std::int64_t>{0, 0},
                                       {1, 0},
                                       {s.sequence - 1, s.head_size - 1}}) {
              const std::int64_t row = (piece.batch + b) * s.sequence + i;
              const std::int64_t head = first + piece.kv_head * per_kv + h;
              EXPECT_EQ(
                  t.offset + b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + d * t.stride[3],
                  row * width + head * s.head_size + d);
            }
          }
        }
      }
      const HeadTensor lse = head_tensor(s, piece, HeadPart::statistics);
      ASSERT_EQ(lse.shape,
                (std::array{piece.batches, piece.kv_heads * group, s.sequence, std::int64_t{1}}));
      for (std::int64_t b = 0; b < lse.shape[0]; ++b) {
        for (std::int64_t h = 0; h < lse.shape[1]; ++h) {
          const std::int64_t plane = (piece.batch + b) * s.heads + piece.kv_head * group + h;
          EXPECT_EQ(lse.offset + b * lse.stride[0] + h * lse.stride[1] + 5 * lse.stride[2],
                    plane * s.sequence + 5);
        }
      }
      // What cuDNN below 9.26 reads: statistics without gaps.
      EXPECT_EQ(lse.stride[0], lse.shape[1] * lse.stride[1]);
    }
  }
}

TEST(CudnnAttention, TheEnvironmentChoosesTheKernels) {
  unsetenv("ZEROLAB_ATTENTION");
  EXPECT_EQ(attention_kernels(), AttentionKernels::automatic);
  {
    const Asked asked("auto");
    EXPECT_EQ(attention_kernels(), AttentionKernels::automatic);
  }
  {
    const Asked asked("cudnn");
    EXPECT_EQ(attention_kernels(), AttentionKernels::cudnn);
  }
  {
    const Asked asked("zerolab");
    EXPECT_EQ(attention_kernels(), AttentionKernels::zerolab);
    EXPECT_EQ(describe_attention(), "zerolab (ZEROLAB_ATTENTION)");
  }
  const Asked asked("flash");
  const std::string why = error_of(ErrorCode::invalid, [] { attention_kernels(); });
  for (const char* part : {"ZEROLAB_ATTENTION", "flash", "auto, zerolab, cudnn"}) {
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }
}

TEST(CudnnAttention, WithoutALibraryOpsAreLeftAndAskingForItSaysWhatIsMissing) {
  if (cudnn_missing().empty()) {
    EXPECT_EQ(describe_attention().find("cuDNN 9."), 0u) << describe_attention();
    EXPECT_NO_THROW(CudnnAttention(AttentionKernels::cudnn));
    GTEST_SKIP() << "cuDNN is here: " << describe_attention();
  }
  EXPECT_EQ(describe_attention(), "zerolab (" + cudnn_missing() + ")");
  EXPECT_NE(error_of(ErrorCode::unavailable, [] { CudnnAttention(AttentionKernels::cudnn); })
                .find(cudnn_missing()),
            std::string::npos);
  CudnnAttention automatic(AttentionKernels::automatic);
  EXPECT_FALSE(automatic.run(AttentionForward{}, {}));
}

// What the kernels of cuDNN cannot do never reaches it: this must hold without a GPU.
TEST(CudnnAttention, LeavesWhatItDoesNotTake) {
  CudnnAttention cudnn(AttentionKernels::automatic);
  alignas(256) static std::byte memory[512];
  ExecContext context;
  context.workspace = memory;
  AttentionForward op;
  const auto with = [&](DType dtype, const AttentionShape& shape) {
    op.shape = shape;
    op.qkv = packed_qkv({memory, dtype, {shape.rows(), shape.qkv_width()}}, shape);
    op.out = {memory, dtype, {shape.rows(), shape.out_width()}};
    op.lse = {memory, DType::f32, {shape.batch, shape.heads, shape.sequence}};
    return op;
  };
  EXPECT_FALSE(cudnn.run(with(DType::f32, {1, 64, 1, 1, 64}), context));
  EXPECT_FALSE(cudnn.run(with(DType::bf16, {1, 65, 1, 1, 64}), context));
  EXPECT_FALSE(cudnn.run(with(DType::bf16, {1, 64, 1, 1, 32}), context));
  EXPECT_FALSE(cudnn.run(with(DType::bf16, {0, 64, 1, 1, 64}), context));
  AttentionForward odd = with(DType::bf16, {1, 64, 1, 1, 64});
  for (ColumnsView* view : {&odd.qkv.q, &odd.qkv.k, &odd.qkv.v}) view->matrix.data += 8;
  EXPECT_FALSE(cudnn.run(odd, context));
  AttentionForward dropping = with(DType::bf16, {1, 64, 1, 1, 64});
  dropping.dropout.p = 0.1f;
  EXPECT_FALSE(cudnn.run(dropping, context));
  EXPECT_FALSE(cudnn.run(Fill{}, context));
  // Without a GPU there is no plan for anything.
  const AttentionForward fits = with(DType::bf16, {1, 64, 1, 1, 64});
  EXPECT_TRUE(device_count() > 0 || !cudnn.run(fits, context));
}

class CudnnGraphs : public testing::TestWithParam<std::tuple<DType, bool, bool>> {};

TEST_P(CudnnGraphs, TheFrontendAcceptsOurLayouts) {
  if (!cudnn_missing().empty()) GTEST_SKIP() << cudnn_missing();
  const auto [dtype, backward, deterministic] = GetParam();
  for (const AttentionShape& shape : kShapes) {
    const CudnnProblem problem{shape, dtype, 0.125, backward, deterministic};
    for (const std::int64_t most : {std::int64_t{1}, shape.batch * shape.kv_heads}) {
      for (const int capability : {80, 90}) {
        EXPECT_NO_THROW(CudnnGraph(problem, cut(shape, most).front(), capability));
      }
    }
  }
}

// An H200, as cuDNN describes GPUs.
const char* const kH200 =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,
        "multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,
        "maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,
        "maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,
        "maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,
        "smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,
        "deviceName":"NVIDIA H200","deviceVer":900,"driverVer":13000,"cudaDeviceId":0,
        "totalGlobalMem":150000000000})";

// A driver is looked for, not asked: without one the toolkit's stub does.
bool some_driver() {
  for (const char* path : {"libcuda.so.1", ZL_CUDA_STUB}) {
    if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
  }
  return false;
}

TEST_P(CudnnGraphs, CudnnHasPlansForOurLayoutsOnAnH200) {
  if (!cudnn_missing().empty()) GTEST_SKIP() << cudnn_missing();
  if (!some_driver()) GTEST_SKIP() << "neither libcuda.so.1 nor its stub can be loaded";
  const auto [dtype, backward, deterministic] = GetParam();
  for (const AttentionShape& shape : {AttentionShape{8, 1024, 12, 12, 64}, {2, 128, 6, 2, 128}}) {
    const CudnnProblem problem{shape, dtype, 0.125, backward, deterministic};
    for (const std::int64_t most : {std::int64_t{1}, shape.batch * shape.kv_heads}) {
      EXPECT_NO_THROW(CudnnGraph(problem, cut(shape, most).front(), 90).check_support(kH200));
    }
  }
}

TEST(CudnnSupport, AGpuThatIsTooOldHasNoPlan) {
  if (!cudnn_missing().empty()) GTEST_SKIP() << cudnn_missing();
  if (!some_driver()) GTEST_SKIP() << "neither libcuda.so.1 nor its stub can be loaded";
  const AttentionShape shape{1, 64, 1, 1, 64};
  std::string old = kH200;
  old.replace(old.find("900,"), 3, "700");
  CudnnGraph graph({shape, DType::f16, 0.125, true, false}, {0, 0, 1, 1}, 80);
  EXPECT_FALSE(error_of(ErrorCode::failed, [&] { graph.check_support(old); }).empty());
}

// The checks above can fail: the frontend does look at what it is told.
TEST_P(CudnnGraphs, TheFrontendRefusesHeadsThatAreNotAligned) {
  if (!cudnn_missing().empty()) GTEST_SKIP() << cudnn_missing();
  const auto [dtype, backward, deterministic] = GetParam();
  const AttentionShape shape{1, 64, 1, 1, 60};
  const CudnnProblem problem{shape, dtype, 0.125, backward, deterministic};
  const std::string why =
      error_of(ErrorCode::failed, [&] { CudnnGraph(problem, cut(shape, 1).front(), 90); });
  EXPECT_NE(why.find("multiple of"), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(Forms, CudnnGraphs,
                         testing::Combine(testing::Values(DType::bf16, DType::f16), testing::Bool(),
                                          testing::Bool()),
                         [](const auto& p) {
                           return std::string(name_of(std::get<0>(p.param))) +
                                  (std::get<1>(p.param) ? "_backward" : "_forward") +
                                  (std::get<2>(p.param) ? "_deterministic" : "");
                         });

}  // namespace
}  // namespace zl::cuda
