// Helpers of the CPU world tests: rank-private tensors and values every rank can compute.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/world.h"
#include "core/base/dtype.h"

namespace zl::cpu::test {

// Memory of one tensor outside any pool.
struct Array {
  Array(DType type, std::int64_t length)
      : dtype(type), count(length), bytes(static_cast<std::size_t>(length) * size_of(type)) {}
  TensorView view() { return {bytes.data(), dtype, Shape{count}}; }
  TensorView part(std::int64_t first, std::int64_t length) { return view().flat(first, length); }
  // Exact for every element type and every value that was set().
  double get(std::int64_t i) const {
    const std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size_of(dtype);
    const auto as = [at](auto value) {
      std::memcpy(&value, at, sizeof value);
      return value;
    };
    switch (dtype) {
      case DType::f64:
        return as(double{});
      case DType::f32:
        return as(float{});
      case DType::bf16:
        return to_float(as(bfloat16{}));
      case DType::f16:
        return to_float(as(float16{}));
      case DType::u8:
        return as(std::uint8_t{});
      default:
        return as(std::int32_t{});
    }
  }
  void set(std::int64_t i, double value) {
    std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size_of(dtype);
    const auto put = [at](auto stored) { std::memcpy(at, &stored, sizeof stored); };
    switch (dtype) {
      case DType::f64:
        return put(value);
      case DType::f32:
        return put(static_cast<float>(value));
      case DType::bf16:
        return put(to_bfloat16(static_cast<float>(value)));
      case DType::f16:
        return put(to_float16(static_cast<float>(value)));
      case DType::u8:
        return put(static_cast<std::uint8_t>(value));
      default:
        return put(static_cast<std::int32_t>(value));
    }
  }
  bool operator==(const Array&) const = default;

  DType dtype;
  std::int64_t count;
  std::vector<std::byte> bytes;
};

// What rank `rank` contributes as tensor `tensor`; the same on whoever asks.
inline Array input(DType dtype, std::int64_t count, int rank, std::size_t tensor) {
  Array array(dtype, count);
  std::minstd_rand random(static_cast<unsigned>(rank * 1000) + static_cast<unsigned>(tensor) + 1);
  const double largest = dtype == DType::i32 ? 1e8 : dtype == DType::u8 ? 255.0 : 2.0;
  std::uniform_real_distribution<double> uniform(dtype == DType::u8 ? 0 : -largest, largest);
  for (std::int64_t i = 0; i < count; ++i) array.set(i, uniform(random));
  return array;
}

// What every suite of collectives runs over. Odd counts, below and above the share grain (64), the
// reduction block (2048) and any block of a GPU's kernel, and none at all.
inline const std::vector<std::int64_t> kCounts = {1, 0, 63, 130, 2049, 9001, 7};
inline constexpr DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32};

inline std::vector<ReduceOp> ops_of(DType dtype) {
  if (dtype == DType::i32) return {ReduceOp::sum, ReduceOp::max};
  return {ReduceOp::sum, ReduceOp::average, ReduceOp::max};
}

// One tensor of `chunks` chunks per count.
inline std::vector<Array> inputs(DType dtype, int rank, int chunks) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    arrays.push_back(input(dtype, kCounts[i] * chunks, rank, i));
  }
  return arrays;
}

// Those of every rank.
inline std::vector<std::vector<Array>> all_inputs(DType dtype, int ranks, int chunks) {
  std::vector<std::vector<Array>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(inputs(dtype, rank, chunks));
  return all;
}

// The contract of core/device/communicator.h for one tensor, element by element: rank order, f32
// (f64 for f64, exact for i32), one scale, one rounding.
inline Array reduced(const std::vector<std::vector<Array>>& all, std::size_t tensor, ReduceOp op) {
  const Array& first = all[0][tensor];
  Array result(first.dtype, first.count);
  const bool is_exact = first.dtype == DType::f64 || first.dtype == DType::i32;
  for (std::int64_t i = 0; i < first.count; ++i) {
    const auto combine = [&](auto value) {
      for (std::size_t rank = 1; rank < all.size(); ++rank) {
        const auto next = static_cast<decltype(value)>(all[rank][tensor].get(i));
        value = op == ReduceOp::max ? std::max(value, next) : value + next;
      }
      using T = decltype(value);
      return op == ReduceOp::average ? value * (T{1} / static_cast<T>(all.size())) : value;
    };
    result.set(
        i, is_exact ? combine(first.get(i)) : double{combine(static_cast<float>(first.get(i)))});
  }
  return result;
}

inline std::vector<Array> all_reduced(const std::vector<std::vector<Array>>& all, ReduceOp op) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < all[0].size(); ++i) arrays.push_back(reduced(all, i, op));
  return arrays;
}

// What run_ranks runs on: threads, unless a test program has other ranks.
inline std::function<std::unique_ptr<World>(const WorldOptions&)> make_ranks = make_world;

inline void run_ranks(int ranks, const std::function<void(RankHandle)>& program) {
  make_ranks({.ranks = ranks, .threads_per_rank = 1})->run(program);
}

// The message of the error that the world rethrows; empty: none.
inline std::string error_of(World& world, const std::function<void(RankHandle)>& program) {
  try {
    world.run(program);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace zl::cpu::test
