// Token and position embeddings, forward.
#include <math.h>

#include "backends/cuda/kernel/dropout.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/embedding.h"

namespace zl::cuda {
namespace {

// A token outside the vocabulary makes its row NaN, which the loss shows; token sources refuse such
// ids before they get here.
template <class T>
struct EmbedBody {
  const std::int32_t* tokens;
  const T *wte, *wpe;
  T* out;
  std::int64_t columns, sequence, first_position, first_token, rows, vocab;
  DropoutSpec dropout;
  bool packed;
  Math<T> scale;

  __device__ Math<T> element(std::int64_t row, std::int64_t column) const {
    const std::int64_t token = tokens[row], place = token - first_token;
    if (token < 0 || token >= vocab) return static_cast<Math<T>>(NAN);
    const bool has_token = place >= 0 && place < rows;
    Math<T> value = has_token ? scale * load_value(wte[place * columns + column]) : Math<T>{0};
    if (wpe != nullptr)
      value += load_value(wpe[(first_position + row % sequence) * columns + column]);
    return value;
  }

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    Math<T> values[kRun];
    const std::int64_t row = first / columns, column = first % columns;
    const std::int64_t token = tokens[row], place = token - first_token;
    if (packed && place >= 0 && place < rows) {  // a run lies in one row
      load_run(wte + place * columns + column, length, true, values);
#pragma unroll
      for (int i = 0; i < kRun; ++i) values[i] *= scale;
      if (wpe != nullptr) {
        Math<T> positions[kRun];
        load_run(wpe + (first_position + row % sequence) * columns + column, length, true,
                 positions);
#pragma unroll
        for (int i = 0; i < kRun; ++i) values[i] += positions[i];
      }
    } else {
      for (int i = 0; i < kRun; ++i) {
        const std::int64_t at = first + i;
        values[i] = i < length ? element(at / columns, at % columns) : Math<T>{0};
      }
    }
    apply_dropout(dropout, first, values);
    store_run(out + first, length, packed, values);
  }
};

}  // namespace

void execute(const EmbeddingForward& op, const ExecContext& context) {
  with_float_type(op.out.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    const std::int64_t columns = op.out.columns();
    launch_runs(context, op.out.count(),
                EmbedBody<T>{
                    op.tokens.as<std::int32_t>(), op.wte.as<T>(),
                    op.wpe.empty() ? nullptr : op.wpe.as<T>(), op.out.as<T>(), columns, op.sequence,
                    op.first_position, op.first_token, op.wte.rows(), op.vocabulary(), op.dropout,
                    columns % kRun == 0 && aligned_16(op.wte.data, op.wpe.data, op.out.data),
                    static_cast<Math<T>>(op.scale)});
  });
}

}  // namespace zl::cuda
