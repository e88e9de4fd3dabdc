#include "backends/cpu/ops/gemm_onednn.h"

#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/tile.h"
#include "core/base/error.h"
#include "core/ops/matmul.h"

#ifdef ZL_WITH_ONEDNN
#include <array>
#include <dnnl.hpp>
#include <map>
#include <string>
#include <unordered_map>

namespace zl::cpu {
namespace {

dnnl::memory::data_type data_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// Whether oneDNN may use all of these.
bool has_instructions(dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

// A row-major rows x columns matrix in the (perhaps longer) rows of `view`, or the transpose of
// one.
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, const TensorView& view,
                          bool transposed) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, view.columns()} : dnnl::memory::dims{view.columns(), 1};
  return {{rows, columns}, data_type(view.dtype), strides};
}

dnnl::matmul::primitive_desc describe(const Gemm& op) {
  const auto a = matrix(op.m(), op.k(), op.a, op.trans_a);
  const auto b = matrix(op.k(), op.n(), op.b, op.trans_b);
  const auto c = matrix(op.m(), op.n(), op.c, false);
  dnnl::post_ops after;
  if (op.accumulate) after.append_sum(1.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  if (op.bias.empty()) return {dnnl::matmul::desc(a, b, c), attributes, engine()};
  return {dnnl::matmul::desc(a, b, matrix(1, op.n(), op.bias, false), c), attributes, engine()};
}

// A compiled product. A primitive owns scratch memory, so each thread has its own; oneDNN itself
// shares the generated code among them.
const dnnl::matmul& primitive(const Gemm& op, int threads) {
  using Key = std::array<std::int64_t, 7>;
  static thread_local std::map<Key, dnnl::matmul> primitives;
  const std::int64_t flags = static_cast<std::int64_t>(op.a.dtype) * 256 +
                             static_cast<std::int64_t>(op.c.dtype) * 16 + op.trans_a * 8 +
                             op.trans_b * 4 + op.accumulate * 2 + !op.bias.empty();
  const Key key{op.m(), op.n(), op.k(), op.a.columns(), op.c.columns(), flags, threads};
  const auto found = primitives.find(key);
  if (found != primitives.end()) return found->second;
  return primitives.emplace(key, dnnl::matmul(describe(op))).first->second;
}

void run_primitive(const Gemm& op, int threads) {
  static thread_local dnnl::stream stream(engine());
  const dnnl::matmul& product = primitive(op, threads);
  const auto argument = [](const TensorView& view, const dnnl::memory::desc& desc) {
    return dnnl::memory(desc, engine(), view.data);
  };
  std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, argument(op.a, matrix(op.m(), op.k(), op.a, op.trans_a))},
      {DNNL_ARG_WEIGHTS, argument(op.b, matrix(op.k(), op.n(), op.b, op.trans_b))},
      {DNNL_ARG_DST, argument(op.c, matrix(op.m(), op.n(), op.c, false))}};
  if (!op.bias.empty()) {
    arguments.emplace(DNNL_ARG_BIAS, argument(op.bias, matrix(1, op.n(), op.bias, false)));
  }
  product.execute(stream, arguments);
}

// c = bias in every row (+ c), so that sgemm can add the product to it.
void start_from_bias(const Gemm& op, const ExecContext& context) {
  const float* __restrict bias = op.bias.as<const float>();
  const std::int64_t columns = op.n();
  parallel_for(context, op.m(), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* __restrict c = op.c.as<float>() + row * columns;
      for (std::int64_t j = 0; j < columns; ++j) c[j] = op.accumulate ? c[j] + bias[j] : bias[j];
    }
  });
}

// A row-major operand of sgemm, from its row or column `k` of the dimension that is summed over.
struct Operand {
  const float* data;
  std::int64_t stride;  // from one row to the next
  bool sums_rows;       // k counts rows, not columns

  Operand from(std::int64_t k) const {
    return {data + (sums_rows ? k * stride : k), stride, sums_rows};
  }
};

// c (+)= op(a) b, summed over `depth`.
void sgemm(const Gemm& op, const Operand& a, const Operand& b, std::int64_t depth, bool add) {
  const auto status =
      dnnl_sgemm(op.trans_a ? 'T' : 'N', 'N', op.m(), op.n(), depth, 1.0f, a.data, a.stride, b.data,
                 b.stride, add ? 1.0f : 0.0f, op.c.as<float>(), op.c.columns());
  if (status != dnnl_success) throw dnnl::error(status, "dnnl_sgemm failed");
}

// Without AVX-512, oneDNN reads the operands of a product of few rows or columns where they lie,
// its summed dimension innermost (nocopy_checker_avx2 of its gemm_driver.cpp); others it repacks.
bool is_read_in_place(const Gemm& op) {
  static const bool has_avx512 = has_instructions(dnnl::cpu_isa::avx512_core);
  constexpr double kRepacked = 0.0038;
  return !has_avx512 && op.k() > 0 &&
         1.0 / static_cast<double>(op.m()) + 1.0 / static_cast<double>(op.n()) >= kRepacked;
}

// Then rows a multiple of 2 KiB apart fall into a few sets of the L1 cache and evict each other.
bool collides(const Operand& operand) {
  constexpr std::int64_t kApart = 512;
  return operand.sums_rows && operand.stride % kApart == 0;
}

// The product of copies of such operands whose rows lie a cache line further apart, a part of the
// summed dimension at a time: up to 2.4 times as fast on a Zen 3, the copies included.
void sgemm_of_copies(const Gemm& op, const Operand& a, const Operand& b, bool add,
                     const ExecContext& context) {
  constexpr std::int64_t kGap = kLineBytes / sizeof(float);
  constexpr std::int64_t kCopied = std::int64_t{1} << 20;  // floats: in the last level of caches
  static thread_local Scratch<float> copies;
  const auto copied_row = [](const Operand& each) {
    return collides(each) ? each.stride + kGap : 0;
  };
  const std::int64_t a_row = copied_row(a), b_row = copied_row(b), k = op.k();
  const std::int64_t parts = std::min(k, (k * (a_row + b_row) + kCopied - 1) / kCopied);
  const std::int64_t most = (k + parts - 1) / parts;
  float* const to = copies.reserve(most * (a_row + b_row));
  const auto copy = [&context](const Operand& rows, std::int64_t count, float* target) -> Operand {
    parallel_for(context, count, rows_worth_a_thread(rows.stride), [&](auto begin, auto end) {
      for (auto i = begin; i < end; ++i) {
        std::copy_n(rows.data + i * rows.stride, rows.stride, target + i * (rows.stride + kGap));
      }
    });
    return {target, rows.stride + kGap, true};
  };
  for (std::int64_t done = 0; done < k; done += most) {
    const std::int64_t depth = std::min(most, k - done);
    const Operand a_part = a.from(done), b_part = b.from(done);
    sgemm(op, a_row > 0 ? copy(a_part, depth, to) : a_part,
          b_row > 0 ? copy(b_part, depth, to + most * a_row) : b_part, depth, add || done > 0);
  }
}

// Faster than the fp32 matmul primitive for x W, where that loses half its speed if the rows of b
// lie a multiple of a page apart. For x W^T that is faster: on two cores of a Zen 4 1.3 times over
// the shapes of the catalogue, up to three times where W's rows lie a multiple of 2 KiB apart.
void run_sgemm(const Gemm& op, const ExecContext& context) {
  if (!op.bias.empty()) start_from_bias(op, context);
  const bool add = op.accumulate || !op.bias.empty();
  const Operand a{op.a.as<const float>(), op.a.columns(), op.trans_a};
  const Operand b{op.b.as<const float>(), op.b.columns(), true};
  if (is_read_in_place(op) && (collides(a) || collides(b))) {
    sgemm_of_copies(op, a, b, add, context);
  } else {
    sgemm(op, a, b, op.k(), add);
  }
}

}  // namespace

bool onednn_prefers(const Gemm& op) {
  if (op.a.dtype == DType::f32) return true;
  // The processor decides, not a clock: runs on one machine give the same bits. Each set of
  // instructions has the bits of those that it contains.
  static const bool multiplies_bf16 = has_instructions(dnnl::cpu_isa::avx512_core_bf16);
  return op.a.dtype == DType::bf16 && multiplies_bf16;
}

void onednn_gemm(const Gemm& op, const ExecContext& context) {
  const ExecContext team = product_team(context, op.m() * op.n() * op.k());
#ifdef _OPENMP
  omp_set_num_threads(team.threads);  // oneDNN asks OpenMP how many threads to use
#endif
  try {
    if (op.a.dtype == DType::f32 && !op.trans_b) {
      run_sgemm(op, team);
    } else {
      run_primitive(op, team.threads);
    }
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::failed, std::string("gemm: oneDNN: ") + error.what());
  }
}

}  // namespace zl::cpu

#else

namespace zl::cpu {

bool onednn_prefers(const Gemm&) { return false; }
void onednn_gemm(const Gemm&, const ExecContext&) {
  throw Error(ErrorCode::unavailable, "gemm: oneDNN is not built in (apt-get install libdnnl-dev)");
}

}  // namespace zl::cpu
#endif
