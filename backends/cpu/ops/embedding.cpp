// Token and position embeddings, forward and backward.
#include <string>
#include <vector>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/random_fill.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"

namespace zl::cpu {
namespace {

void check_tokens(const TensorView& tokens, std::int64_t vocab, const char* op) {
  for (std::int64_t i = 0; i < tokens.count(); ++i) {
    const std::int32_t token = tokens.as<const std::int32_t>()[i];
    if (token < 0 || token >= vocab) {
      throw Error(ErrorCode::invalid, std::string(op) + ": token " + std::to_string(token) +
                                          " at position " + std::to_string(i) +
                                          " is outside the vocabulary of " + std::to_string(vocab));
    }
  }
}

template <class T>
void embed_row(const EmbeddingForward& op, std::int64_t row) {
  using A = Arithmetic<T>;
  const std::int64_t columns = op.out.columns();
  const std::int64_t token = op.tokens.as<const std::int32_t>()[row] - op.first_token;
  const bool has_token = token >= 0 && token < op.wte.rows();
  const A scale = static_cast<A>(op.scale);
  for (std::int64_t first = 0; first < columns; first += kBlock) {
    const std::int64_t width = std::min(kBlock, columns - first);
    A sum[kBlock] = {};
    if (has_token) {
      const T* __restrict token_row = op.wte.as<const T>() + token * columns + first;
      for (std::int64_t c = 0; c < width; ++c) sum[c] = scale * widen<A>(token_row[c]);
    }
    if (!op.wpe.empty()) {
      const T* __restrict position =
          op.wpe.as<const T>() + (op.first_position + row % op.sequence) * columns + first;
      for (std::int64_t c = 0; c < width; ++c) sum[c] += widen<A>(position[c]);
    }
    apply_dropout(op.dropout, static_cast<std::uint64_t>(row * columns + first), width, sum);
    store(op.out, row * columns + first, width, sum);
  }
}

// Adds dropout'(dout)[row, first .. first + width) to sum.
template <class A>
void add_row(const EmbeddingBackward& op, std::int64_t row, std::int64_t first, std::int64_t width,
             A* __restrict sum) {
  A buffer[kBlock];
  const std::int64_t index = row * op.dout.columns() + first;
  const A* gradient = load<A>(op.dout, index, width, buffer);
  if (op.dropout.p > 0) {
    if (gradient != buffer) std::copy_n(gradient, width, buffer);
    apply_dropout(op.dropout, static_cast<std::uint64_t>(index), width, buffer);
    gradient = buffer;
  }
  for (std::int64_t c = 0; c < width; ++c) sum[c] += gradient[c];
}

// Rows of dout ordered by token, then position: (token << 32) | row.
std::vector<std::uint64_t> rows_by_token(const TensorView& tokens) {
  std::vector<std::uint64_t> order(tokens.count());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto token = static_cast<std::uint32_t>(tokens.as<const std::int32_t>()[i]);
    order[i] = (std::uint64_t{token} << 32) | i;
  }
  std::sort(order.begin(), order.end());
  return order;
}

// One block of columns of dwte: all tokens, each summed in position order.
template <class A>
void scatter_columns(const EmbeddingBackward& op, const std::vector<std::uint64_t>& order,
                     std::int64_t first, std::int64_t width) {
  for (std::size_t i = 0; i < order.size();) {
    const std::uint64_t token = order[i] >> 32;
    A sum[kBlock] = {};
    for (; i < order.size() && order[i] >> 32 == token; ++i) {
      add_row(op, static_cast<std::int64_t>(order[i] & 0xffffffffu), first, width, sum);
    }
    const std::int64_t place = static_cast<std::int64_t>(token) - op.first_token;
    if (place < 0 || place >= op.dwte.rows()) continue;
    for (std::int64_t c = 0; c < width; ++c) sum[c] *= static_cast<A>(op.scale);
    // Rows were cleared beforehand unless they accumulate, so both cases add.
    store(op.dwte, place * op.dwte.columns() + first, width, sum, true);
  }
}

// Row `position` of dwpe, summed over the batch in order.
template <class A>
void position_row(const EmbeddingBackward& op, std::int64_t position) {
  const std::int64_t columns = op.dwpe.columns(), rows = op.dout.rows();
  for (std::int64_t first = 0; first < columns; first += kBlock) {
    const std::int64_t width = std::min(kBlock, columns - first);
    A sum[kBlock] = {};
    if (position >= op.first_position && position < op.first_position + op.sequence) {
      for (std::int64_t row = position - op.first_position; row < rows; row += op.sequence) {
        add_row(op, row, first, width, sum);
      }
    }
    store(op.dwpe, position * columns + first, width, sum, op.accumulate_wpe);
  }
}

}  // namespace

void execute(const EmbeddingForward& op, const ExecContext& context) {
  check_tokens(op.tokens, op.vocabulary(), op.kName);
  const std::int64_t grain = rows_worth_a_thread(op.out.columns());
  with_float_type(op.out.dtype, op.kName, [&](auto type) {
    parallel_for(context, op.out.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) embed_row<decltype(type)>(op, row);
    });
  });
}

void execute(const EmbeddingBackward& op, const ExecContext& context) {
  check_tokens(op.tokens, op.vocabulary(), op.kName);
  if (!op.accumulate_wte) execute(Fill{op.dwte, 0}, context);
  const std::vector<std::uint64_t> order = rows_by_token(op.tokens);
  const auto run = [&](auto type) {
    using A = decltype(type);
    const std::int64_t columns = std::max<std::int64_t>(64, rows_worth_a_thread(op.dout.rows(), 2));
    parallel_for(context, op.dwte.columns(), columns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += kBlock) {
        scatter_columns<A>(op, order, first, std::min(kBlock, end - first));
      }
    });
    if (op.dwpe.empty()) return;
    const std::int64_t rows = rows_worth_a_thread(op.dwpe.columns());
    parallel_for(context, op.dwpe.rows(), rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) position_row<A>(op, row);
    });
  };
  with_arithmetic(op.kName, run, op.dout, op.dwte, op.dwpe);
}

}  // namespace zl::cpu
