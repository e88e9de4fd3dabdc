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
ZL_OPS(ZL_KERNEL)
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
