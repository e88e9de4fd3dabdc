// The reduction of ranks that share a GPU, on the host shim: the CPU backend's bits for every type,
// rank count, odd size, alignment and in place.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/reduce.h"
#include "backends/cuda/collectives/reduce.h"

namespace zl::cuda {
namespace {

struct Memory {
  std::vector<uint4> packs;
  std::byte* at(std::size_t offset) { return reinterpret_cast<std::byte*>(packs.data()) + offset; }
};

Memory random_numbers(DType dtype, std::int64_t count, std::mt19937& random) {
  Memory memory{std::vector<uint4>(static_cast<std::size_t>(count) * 8 / 16 + 2)};
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = normal(random);
    switch (dtype) {
      case DType::f64:
        reinterpret_cast<double*>(memory.at(8))[i] = double{value} / 3;
        break;
      case DType::f32:
        reinterpret_cast<float*>(memory.at(0))[i] = value;
        break;
      case DType::bf16:
        reinterpret_cast<bfloat16*>(memory.at(0))[i] = to_bfloat16(value);
        break;
      case DType::f16:
        reinterpret_cast<float16*>(memory.at(0))[i] = to_float16(value);
        break;
      default:
        reinterpret_cast<std::int32_t*>(memory.at(0))[i] = static_cast<std::int32_t>(value * 1000);
    }
  }
  return memory;
}

void expect_cpu_bits(DType dtype, ReduceOp op, int ranks, std::int64_t count, int writers) {
  std::mt19937 random(static_cast<unsigned>(ranks * 1000 + count));
  const std::size_t start = dtype == DType::f64 ? 8 : 0;  // f64 is also misaligned here
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank) memories.push_back(random_numbers(dtype, count, random));
  Memory expected = random_numbers(dtype, count, random);
  std::vector<const std::byte*> given;
  RankPointers pointers;
  for (int rank = 0; rank < ranks; ++rank) {
    Memory& memory = memories[static_cast<std::size_t>(rank)];
    given.push_back(memory.at(start));
    pointers.at[static_cast<std::size_t>(rank)] = memory.at(start);
  }
  std::byte* target = expected.at(start);
  cpu::reduce(dtype, op, given, {&target, 1}, count);
  ExecContext context;
  context.multiprocessors = 2;
  reduce(context, dtype, op, pointers, ranks, pointers, writers, count);  // in place
  for (int rank = 0; rank < writers; ++rank) {
    EXPECT_EQ(std::memcmp(memories[static_cast<std::size_t>(rank)].at(start), target,
                          static_cast<std::size_t>(count) * size_of(dtype)),
              0)
        << name_of(dtype) << ", rank " << rank << " of " << ranks << ", " << count << " elements";
  }
}

TEST(SameGpuReduce, GivesTheCpusBits) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::max}) {
      if (!can_reduce(dtype, op)) continue;
      for (const int ranks : {1, 2, 3, 8}) {
        for (const std::int64_t count : {1, 7, 8, 4099}) {
          expect_cpu_bits(dtype, op, ranks, count, ranks);
          expect_cpu_bits(dtype, op, ranks, count, 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace zl::cuda
