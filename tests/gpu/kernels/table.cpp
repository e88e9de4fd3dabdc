#include "tests/gpu/kernels/table.h"

#include <cuda_runtime.h>
#include <memory>

#include <cmath>

#include "backends/cuda/collectives/reduce.h"
#include "backends/cuda/cudnn_attention.h"
#include "core/ops/op.h"
#include "tests/gpu/kernels/sizes.h"

namespace zl::gpu {
namespace {

constexpr DType kBf16 = DType::bf16, kF32 = DType::f32;

template <class T>
std::string shape_of(const T& op) {
  std::string text;
  op.visit([&](const TensorView& view, Access) {
    if (view.empty() || text.size() > 60) return;
    text += (text.empty() ? "" : " ") + std::string(name_of(view.dtype)) + view.shape.text();
  });
  return text;
}

template <class T>
Limit limit_of(const Cost& cost) {
  constexpr bool compute = std::is_same_v<T, Gemm> || std::is_same_v<T, AttentionForward> ||
                           std::is_same_v<T, AttentionBackward>;
  if (compute) return Limit::compute;
  constexpr std::int64_t kSmall = 1 << 20;
  return cost.bytes_read + cost.bytes_written < kSmall ? Limit::launch : Limit::memory;
}

class Table {
 public:
  Table(Bench& bench, const Ceilings& ceilings) : bench_(bench), ceilings_(ceilings) {}

  std::vector<Row> rows;

  template <class T>
  void time(const std::string& what, const T& op) {
    const Cost cost = op.cost();
    const Limit limit = limit_of<T>(cost);
    const auto bytes = static_cast<double>(cost.bytes_read + cost.bytes_written);
    add({std::string(T::kName) + " " + what, shape_of(op), limit, bench_.seconds(Op(op)), 0, 0},
        limit == Limit::compute ? cost.flops : bytes);
  }
  void add(Row row, double work) {
    row.achieved = work / row.seconds;
    if (row.limit == Limit::memory) row.share = row.achieved / ceilings_.copy;
    if (row.limit == Limit::compute) row.share = row.achieved / ceilings_.gemm_bf16;
    rows.push_back(std::move(row));
  }

 private:
  Bench& bench_;
  const Ceilings& ceilings_;
};

void time_norms(Bench& b, Table& table, const Layer& layer) {
  const std::int64_t n = layer.rows(), c = layer.hidden();
  const bool is_layer_norm = layer.norm == NormKind::layer_norm;
  const TensorView weight = b.normal(kBf16, {c}), rstd = b.normal(kF32, {n});
  const TensorView bias = is_layer_norm ? b.normal(kBf16, {c}) : TensorView{};
  const TensorView mean = is_layer_norm ? b.normal(kF32, {n}) : TensorView{};
  const TensorView x = b.normal(kBf16, {n, c}), y = b.normal(kBf16, {n, c});
  const TensorView z = b.normal(kBf16, {n, c}), out = b.empty(kBf16, {n, c});
  table.time(layer.name, NormForward{.kind = layer.norm,
                                     .x = x,
                                     .add = {},
                                     .sum = {},
                                     .weight = weight,
                                     .bias = bias,
                                     .out = out,
                                     .mean = mean,
                                     .rstd = rstd,
                                     .dropout = {}});
  table.time(layer.name + " with residual", NormForward{.kind = layer.norm,
                                                        .x = x,
                                                        .add = y,
                                                        .sum = z,
                                                        .weight = weight,
                                                        .bias = bias,
                                                        .out = out,
                                                        .mean = mean,
                                                        .rstd = rstd,
                                                        .dropout = {}});
  table.time(layer.name, NormBackward{.kind = layer.norm,
                                      .dout = y,
                                      .x = x,
                                      .weight = weight,
                                      .mean = mean,
                                      .rstd = rstd,
                                      .dresidual = z,
                                      .dx = out,
                                      .dweight = b.zeros(kF32, {c}),
                                      .dbias = is_layer_norm ? b.zeros(kF32, {c}) : TensorView{}});
  b.clear();
}

void time_mlp(Bench& b, Table& table, const Layer& layer) {
  const std::int64_t n = layer.rows(), c = layer.hidden(), f = layer.ffn;
  const std::int64_t wide = is_gated(layer.activation) ? 2 * f : f;
  const TensorView x = b.normal(kBf16, {n, c}), weight = b.normal(kBf16, {wide, c}, 0.02);
  const TensorView up = b.normal(kBf16, {n, wide}), act = b.normal(kBf16, {n, f});
  const TensorView grad = b.normal(kBf16, {n, wide}), dweight = b.zeros(kF32, {wide, c});
  const TensorView bias =
      layer.norm == NormKind::layer_norm ? b.normal(kBf16, {wide}) : TensorView{};
  table.time(layer.name + " up", Gemm{.a = x, .b = weight, .c = up, .bias = bias, .trans_b = true});
  table.time(layer.name + " up, gradient of the input",
             Gemm{.a = grad, .b = weight, .c = x, .bias = {}});
  table.time(
      layer.name + " up, gradient of the weights",
      Gemm{.a = grad, .b = x, .c = dweight, .bias = {}, .trans_a = true, .accumulate = true});
  table.time(layer.name, ActivationForward{.kind = layer.activation, .x = up, .y = act});
  table.time(layer.name,
             ActivationBackward{.kind = layer.activation, .x = up, .dy = act, .dx = grad});
  if (!bias.empty()) {
    table.time(layer.name, BiasBackward{.dout = grad, .dbias = b.zeros(kF32, {wide})});
  }
  b.clear();
}

// The products around a chunk of logits as the model makes them: rows of a vocabulary that is no
// multiple of 64 are padded.
void time_logits(Bench& b, Table& table, const Layer& layer, std::int64_t rows,
                 std::int64_t vocab) {
  const std::int64_t c = layer.hidden(), row = (vocab + 63) / 64 * 64;
  const bool padded = row != vocab;
  const TensorView x = b.normal(kBf16, {rows, c}), weight = b.normal(kBf16, {vocab, c}, 0.02);
  const TensorView logits = b.normal(kBf16, {rows, row}), dweight = b.zeros(kF32, {vocab, c});
  const std::string what = layer.name + " logits of " + std::to_string(vocab) + " columns";
  table.time(what,
             Gemm{.a = x, .b = weight, .c = logits, .bias = {}, .trans_b = true, .padded = padded});
  table.time(what + ", gradient of the input",
             Gemm{.a = logits, .b = weight, .c = x, .bias = {}, .padded = padded});
  table.time(what + ", gradient of the weights", Gemm{.a = logits,
                                                      .b = x,
                                                      .c = dweight,
                                                      .bias = {},
                                                      .trans_a = true,
                                                      .accumulate = true,
                                                      .padded = padded});
  b.clear();
}

struct AttentionOps {
  AttentionForward forward;
  AttentionBackward backward;
};

AttentionOps make_attention(Bench& b, const AttentionShape& s) {
  const TensorView qkv = b.normal(kBf16, {s.rows(), s.qkv_width()});
  const TensorView out = b.empty(kBf16, {s.rows(), s.out_width()});
  const TensorView dout = b.normal(kBf16, {s.rows(), s.out_width()});
  const TensorView dqkv = b.empty(kBf16, {s.rows(), s.qkv_width()});
  const TensorView lse = b.empty(kF32, {s.batch, s.heads, s.sequence});
  const TensorView delta = b.empty(kF32, {s.batch, s.heads, s.sequence});
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  const QkvViews read = packed_qkv(qkv, s), written = packed_qkv(dqkv, s);
  return {{read, out, lse, s, scale, {}}, {dout, out, read, lse, written, delta, s, scale, {}}};
}

// One by one the kernels that the device chooses from.
template <class T>
void time_kernels(Bench& b, Table& table, const std::string& layer, const T& op) {
  const auto add = [&](const char* kernels, const std::function<void()>& enqueue) {
    const std::string name = std::string(T::kName) + " " + layer + ", " + kernels;
    table.add({name, shape_of(op), Limit::compute, b.seconds(enqueue), 0, 0}, op.cost().flops);
  };
  add("zerolab's", [&] { cuda::execute(op, b.context()); });
  if (!cuda::cudnn_missing().empty()) return;
  cuda::CudnnAttention cudnn(cuda::AttentionKernels::cudnn);
  if (!cudnn.run(op, b.context())) return;  // it has said why
  add("cuDNN's", [&] { cudnn.run(op, b.context()); });
}

// The norms of heads (Qwen3), and their keys and values on the way to a cache.
void time_head_norms(Bench& b, Table& table, const Layer& layer, const TensorView& qkv) {
  const AttentionShape& shape = layer.attention;
  const std::int64_t kv = 2 * shape.kv_width();
  const TensorView x = b.normal(qkv.dtype, {shape.rows(), normed_width(shape)});
  const TensorView weight = b.normal(qkv.dtype, {shape.head_size});
  const TensorView rstd = b.normal(kF32, {shape.rows() * (shape.heads + shape.kv_heads)});
  const TensorView dweight = b.zeros(kF32, {shape.head_size});
  table.time(layer.name, HeadNormForward{qkv, x, weight, weight, rstd, shape});
  table.time(layer.name, HeadNormBackward{qkv, x, weight, weight, rstd, dweight, dweight, shape});
  const TensorView cache = b.empty(qkv.dtype, {shape.rows(), kv});
  table.time(layer.name, CopyColumns{{qkv, shape.out_width(), kv}, {cache, 0, kv}});
}

void time_attention(Bench& b, Table& table, const Layer& layer) {
  const auto [forward, backward] = make_attention(b, layer.attention);
  if (layer.norm == NormKind::rms_norm) {
    const TensorView dqkv = backward.dqkv.q.matrix;
    b.run(Fill{dqkv.flat(), 1});
    const AttentionShape& shape = layer.attention;
    const auto angles =
        std::make_shared<const RopeTable>(rope_table(10000.0, shape.head_size, {}, shape.sequence));
    table.time(layer.name, Rope{.qkv = dqkv, .shape = shape, .table = angles});
    time_head_norms(b, table, layer, dqkv);
  }
  table.time(layer.name, forward);
  table.time(layer.name, backward);
  time_kernels(b, table, layer.name, forward);
  time_kernels(b, table, layer.name, backward);
  b.clear();
}

void time_ends(Bench& b, Table& table, const Layer& layer, std::int64_t logit_rows) {
  const std::int64_t n = layer.rows(), c = layer.hidden(), sequence = layer.attention.sequence;
  const bool learned = layer.norm == NormKind::layer_norm;
  const TensorView tokens = b.tokens(n, layer.vocab), x = b.normal(kBf16, {n, c});
  table.time(layer.name,
             EmbeddingForward{.tokens = tokens,
                              .wte = b.normal(kBf16, {layer.vocab, c}),
                              .wpe = learned ? b.normal(kBf16, {sequence, c}) : TensorView{},
                              .out = x,
                              .sequence = sequence,
                              .dropout = {}});
  table.time(layer.name,
             EmbeddingBackward{.tokens = tokens,
                               .dout = x,
                               .dwte = b.zeros(kF32, {layer.vocab, c}),
                               .dwpe = learned ? b.zeros(kF32, {sequence, c}) : TensorView{},
                               .sequence = sequence,
                               .dropout = {}});
  table.time(layer.name, CrossEntropy{.logits = b.normal(kBf16, {logit_rows, layer.vocab}),
                                      .targets = b.tokens(logit_rows, layer.vocab),
                                      .losses = b.empty(kF32, {logit_rows}),
                                      .vocab = layer.vocab,
                                      .grad_scale = 1e-4f});
  table.time(layer.name, LogitStatistics{.logits = b.normal(kBf16, {logit_rows, layer.vocab}),
                                         .targets = b.tokens(logit_rows, layer.vocab),
                                         .statistics = b.empty(kF32, {logit_rows, 3}),
                                         .vocab = layer.vocab});
  b.clear();
}

void time_optimizers(Bench& b, Table& table, const Sizes& sizes) {
  const std::string& what = sizes.parameters_text;
  const Shape flat{sizes.parameters};
  const TensorView p = b.normal(kF32, flat, 0.02), g = b.normal(kF32, flat, 1e-3);
  const TensorView m = b.zeros(kF32, flat), v = b.zeros(kF32, flat), copy = b.empty(kBf16, flat);
  const TensorView update = b.normal(kF32, flat, 1e-3);
  const TensorView one = b.zeros(kF32, {1}), squares = b.zeros(DType::f64, {2});
  table.time(what, AdamStep{.param = p,
                            .grad = g,
                            .m = m,
                            .v = v,
                            .copy = copy,
                            .lr = 1e-4f,
                            .beta1 = 0.9f,
                            .beta2 = 0.95f,
                            .epsilon = 1e-8f,
                            .weight_decay = 0.1f});
  table.time(what,
             SgdStep{.param = p, .grad = g, .buf = m, .copy = copy, .lr = 1e-4f, .momentum = 0.9f});
  table.time(what, LambUpdate{.param = p,
                              .grad = g,
                              .m = m,
                              .v = v,
                              .update = update,
                              .beta1 = 0.9f,
                              .beta2 = 0.95f,
                              .epsilon = 1e-6f,
                              .weight_decay = 0.1f});
  table.time(what, LambApply{.param = p,
                             .update = update,
                             .param_square = squares,
                             .update_square = squares,
                             .copy = copy,
                             .lr = 1e-4f,
                             .min_trust = 0.01f,
                             .max_trust = 10,
                             .average = {}});
  table.time(what, AbsMax{.x = g, .out = one});
  table.time(what,
             SquaredSum{.x = g, .bound = one, .out = squares, .total_count = sizes.parameters});
  table.time(
      what,
      ClipFactor{.parts = squares, .sum = b.zeros(DType::f64, {1}), .factor = squares.flat(0, 1)});
  table.time(what + ", fp32 to bf16", Axpy{.x = p, .y = copy});
  table.time(what + ", accumulate", Axpy{.x = g, .y = m, .accumulate = true});
  table.time(what, Fill{.x = m});
  table.time(what, RandomNormal{.x = p, .std = 0.02, .key = {}});
  table.time(what, Dropout{.x = copy, .y = copy, .spec = {.p = 0.1f, .key = {}}});
  table.time(what, Sum{.x = g, .out = one});
  b.clear();
}

// Momenta in one-bit messages: what 1-bit Adam, 0/1 Adam and 1-bit LAMB add, on eight ranks'
// chunks.
void time_messages(Bench& b, Table& table, const Sizes& sizes) {
  const std::int64_t parameters = sizes.parameters, ranks = 8, chunk = parameters / ranks;
  const std::string what = sizes.parameters_text + ", 8 ranks";
  const TensorView x = b.normal(kF32, {ranks, chunk});
  const TensorView packed = b.empty(DType::u8, {ranks, packed_bytes(chunk)});
  const TensorView square = b.zeros(DType::f64, {2}), scale = b.zeros(kF32, {1});
  const TensorView scales = b.normal(kF32, {ranks, 1});
  table.time(what, SignCompress{x, square, packed, scale, parameters, parameters});
  table.time(what, SignAverage{packed, scales, b.zeros(kF32, {chunk}), 0, chunk});
  table.time(what, SignUnpack{packed, scales, x, 0, parameters});
  b.clear();
}

void time_onebit_steps(Bench& b, Table& table, const Sizes& sizes) {
  const std::string& what = sizes.parameters_text;
  const Shape flat{sizes.parameters};
  const TensorView p = b.normal(kF32, flat, 0.02), g = b.normal(kF32, flat, 1e-3);
  const TensorView m = b.normal(kF32, flat, 1e-3), v = b.zeros(kF32, flat);
  const TensorView moved = b.zeros(kF32, flat), copy = b.empty(kBf16, flat);
  const TensorView update = b.empty(kF32, flat), ratio = b.empty(kF32, flat);
  const TensorView one = b.zeros(kF32, {1}), last = b.zeros(kF32, {1});
  const TensorView square = b.zeros(DType::f64, {2});
  table.time(what, MomentumStep{m, g, 0.9f, 1});
  table.time(what, FrozenAdamStep{p, m, v, copy, 1e-5f, 1e-3f, 0.1f, 1, 1});
  table.time(what, LocalAdamStep{p, m, v, moved, copy, 1e-5f, 1e-3f, 0.1f});
  table.time(what, DenominatorScale{moved, v, 1});
  table.time(what, SharedAdamStep{p, m, v, moved, copy, 1, 1});
  table.time(what, OnebitLambUpdate{p, m, moved, v, b.zeros(kF32, flat), b.empty(kF32, flat),
                                    update, ratio, 0.9f, 0.95f, 1e-3f, 0.1f});
  table.time(what,
             OnebitLambTrust{one, square, square, one, last, b.zeros(kF32, {1}), 0.5f, 4, 0.1f});
  table.time(what, ScaledStep{p, update, one, copy, 1e-5f});
  b.clear();
}

// What ZeRO++ does to a message for 4 ranks.
void time_blocks(Bench& b, Table& table, const Sizes& sizes) {
  const std::string& what = sizes.parameters_text;
  constexpr std::int64_t kRanks = 4, kBlock = 256;
  const std::int64_t columns = sizes.parameters / kRanks;
  const Shape rows{kRanks, columns};
  const TensorView x = b.normal(kBf16, rows), q = b.empty(DType::u8, rows);
  const TensorView scales = b.empty(kF32, {kRanks, blocks_of(columns, kBlock)});
  table.time(what, BlockQuantize{x, q, scales, kBlock});
  table.time(what, BlockDequantize{q, scales, x, kBlock});
  table.time(what, BlockSum{q, scales, b.empty(kF32, {columns}), kBlock, 0.25f, false});
  b.clear();
}

// The kernel behind the collectives of ranks that share a card.
void time_reduction(Bench& b, Table& table, const Sizes& sizes) {
  constexpr int kRanks = 4;
  const std::int64_t count = sizes.reduced;
  cuda::RankPointers ranks;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ranks.at[rank] = b.normal(kBf16, {count}).data;
  }
  const double seconds = b.seconds([&] {
    cuda::reduce(b.context(), kBf16, ReduceOp::average, ranks, kRanks, ranks, kRanks, count);
  });
  table.add({"all_reduce of 4 ranks on one card", "bf16[" + std::to_string(count) + "]",
             Limit::memory, seconds, 0, 0},
            2.0 * kRanks * static_cast<double>(count * static_cast<std::int64_t>(size_of(kBf16))));
  b.clear();
}

double gemm_peak(Bench& b, DType dtype, std::int64_t size) {
  const Gemm op{.a = b.normal(dtype, {size, size}),
                .b = b.normal(dtype, {size, size}),
                .c = b.empty(dtype, {size, size}),
                .bias = {},
                .trans_b = true};
  const double rate = op.cost().flops / b.seconds(Op(op));
  b.clear();
  return rate;
}

}  // namespace

Ceilings measure_ceilings(Bench& b, bool tiny) {
  const Sizes& sizes = tiny ? kTiny : kFull;
  const std::int64_t bytes = sizes.copied;
  const TensorView from = b.normal(kF32, {bytes / 4}), to = b.zeros(kF32, {bytes / 4});
  const double seconds = b.seconds([&] {
    const cudaError_t status = cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(bytes),
                                               cudaMemcpyDeviceToDevice, b.context().stream);
    ZL_CHECK(status == cudaSuccess, "cudaMemcpyAsync");
  });
  b.clear();
  return {2.0 * static_cast<double>(bytes) / seconds, gemm_peak(b, kBf16, sizes.gemm),
          gemm_peak(b, kF32, sizes.gemm)};
}

std::vector<Row> measure_table(Bench& bench, const Ceilings& ceilings, bool tiny) {
  const Sizes& sizes = tiny ? kTiny : kFull;
  Table table(bench, ceilings);
  for (const Layer& layer : {sizes.gpt2, sizes.llama}) {
    time_norms(bench, table, layer);
    time_mlp(bench, table, layer);
    time_attention(bench, table, layer);
    time_ends(bench, table, layer, sizes.logit_rows);
  }
  for (const std::int64_t vocab : {sizes.gpt2.vocab, sizes.odd_vocab}) {
    time_logits(bench, table, sizes.gpt2, sizes.chunk_rows, vocab);
  }
  time_optimizers(bench, table, sizes);
  time_messages(bench, table, sizes);
  time_onebit_steps(bench, table, sizes);
  time_blocks(bench, table, sizes);
  time_reduction(bench, table, sizes);
  return table.rows;
}

AttentionSeconds measure_attention(Bench& bench, const AttentionCase& shape) {
  const auto [forward, backward] = make_attention(
      bench, {shape.batch, shape.sequence, shape.heads, shape.heads, shape.head_size});
  const AttentionSeconds seconds{bench.seconds(Op(forward)), bench.seconds(Op(backward))};
  bench.clear();
  return seconds;
}

}  // namespace zl::gpu
