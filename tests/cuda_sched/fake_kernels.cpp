// The backend's kernels and libraries on the fake runtime: the CPU's code on the stream's thread.
#include <string>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/reduce.h"
#include "backends/cuda/blas.h"
#include "backends/cuda/collectives/reduce.h"
#include "backends/cuda/nccl_communicator.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/op.h"
#include "tests/cuda_fake/fake.h"

namespace zl::cuda {
namespace {

template <class T>
void launch(const T& op, const ExecContext& context) {
  fake::check_reach(op, fake::Reach::pageable, "the GPU");
  fake::count_launch();
  fake::enqueue(context.stream, [op] { cpu::run_op(op, 1); });
}

}  // namespace

#define ZL_KERNEL(Type) \
  void execute(const Type& op, const ExecContext& context) { launch(op, context); }
ZL_KERNEL(Gemm)
ZL_KERNEL(BiasBackward)
ZL_KERNEL(EmbeddingForward)
ZL_KERNEL(EmbeddingBackward)
ZL_KERNEL(NormForward)
ZL_KERNEL(NormBackward)
ZL_KERNEL(Rope)
ZL_KERNEL(AttentionForward)
ZL_KERNEL(AttentionBackward)
ZL_KERNEL(ActivationForward)
ZL_KERNEL(ActivationBackward)
ZL_KERNEL(CrossEntropy)
ZL_KERNEL(Sum)
ZL_KERNEL(Fill)
ZL_KERNEL(Axpy)
ZL_KERNEL(Dropout)
ZL_KERNEL(RandomNormal)
ZL_KERNEL(AbsMax)
ZL_KERNEL(SquaredSum)
ZL_KERNEL(AdamStep)
ZL_KERNEL(SgdStep)
ZL_KERNEL(LambUpdate)
ZL_KERNEL(LambApply)
ZL_KERNEL(SignCompress)
ZL_KERNEL(SignAverage)
ZL_KERNEL(SignUnpack)
ZL_KERNEL(MomentumStep)
ZL_KERNEL(FrozenAdamStep)
ZL_KERNEL(LocalAdamStep)
ZL_KERNEL(DenominatorScale)
ZL_KERNEL(SharedAdamStep)
ZL_KERNEL(OnebitLambUpdate)
ZL_KERNEL(OnebitLambTrust)
ZL_KERNEL(ScaledStep)
ZL_KERNEL(BlockQuantize)
ZL_KERNEL(BlockDequantize)
ZL_KERNEL(BlockSum)
#undef ZL_KERNEL

void reduce(const ExecContext& context, DType dtype, ReduceOp op, const RankPointers& sources,
            int ranks, const RankPointers& destinations, int writers, std::int64_t count) {
  const std::vector<const std::byte*> from(sources.at.begin(), sources.at.begin() + ranks);
  const std::vector<std::byte*> to(destinations.at.begin(), destinations.at.begin() + writers);
  fake::enqueue(context.stream, [=] { cpu::reduce(dtype, op, from, to, count); });
}

// Without cuBLASLt no product takes over the op behind it: both run.
Blas::~Blas() = default;
GemmDescriptors::~GemmDescriptors() = default;
bool Blas::supports(const Product&, std::int64_t) { return false; }
void Blas::run(const Product&, Stream, std::byte*, std::int64_t) {
  throw Error(ErrorCode::unavailable, "the fake runtime has no cuBLASLt");
}

const std::string& availability() {
  static const std::string none;
  return none;
}
int device_count() { return 1; }

std::unique_ptr<RankGroup> make_nccl_group(int, std::chrono::milliseconds) {
  throw Error(ErrorCode::unavailable, "the fake runtime has no NCCL");
}
std::unique_ptr<RankGroup> make_nccl_process_group(const Launch&, std::chrono::milliseconds) {
  throw Error(ErrorCode::unavailable, "the fake runtime has no NCCL");
}

}  // namespace zl::cuda
