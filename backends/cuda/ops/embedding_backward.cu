// Backward of the embeddings. Tokens are sorted (stably, in the workspace), then blocks sum chunks
// of the sorted rows: a row of dwte is written by the chunk its token starts in, and what later
// chunks hold of the same token is added to it afterwards, in order.
#include <algorithm>

#include "backends/cuda/kernel/dropout.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"

namespace zl::cuda {
namespace {

// Keys sort by row of dwte, then by row; tokens of other ranks and ids that are no tokens (negative
// ones too) come last.
using Key = std::uint64_t;
__device__ __forceinline__ Key key_of(std::int32_t token, std::int64_t row) {
  return Key{static_cast<std::uint32_t>(token)} << 32 | static_cast<Key>(row);
}
__device__ __forceinline__ std::int64_t token_of(Key key) {
  return static_cast<std::int64_t>(key >> 32);
}
__device__ __forceinline__ std::int64_t row_of(Key key) {
  return static_cast<std::int64_t>(key & 0xffffffffu);
}

constexpr int kSortThreads = 1024;

// Sorts each tile of the keys, two for each thread of the block (a power of two), in shared memory
// (bitonic network; Batcher 1968).
__global__ void __launch_bounds__(kSortThreads)
    sort_tiles(const std::int32_t* tokens, std::int32_t first_token, std::int64_t rows, Key* keys) {
  __shared__ Key tile[2 * kSortThreads];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const std::int64_t start = std::int64_t{blockIdx.x} * 2 * threads;
  for (int i = thread; i < 2 * threads; i += threads) {
    tile[i] = start + i < rows ? key_of(tokens[start + i] - first_token, start + i) : ~Key{0};
  }
  for (int size = 2; size <= 2 * threads; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int low = 2 * thread - (thread & (stride - 1)), high = low + stride;
      const bool ascending = (low & size) == 0;
      const Key a = tile[low], b = tile[high];
      if ((a > b) == ascending) {
        tile[low] = b;
        tile[high] = a;
      }
    }
  }
  __syncthreads();
  for (int i = thread; i < 2 * threads; i += threads) {
    if (start + i < rows) keys[start + i] = tile[i];
  }
}

// Merges neighbouring sorted runs: a key's place is its own rank plus its rank in the other run.
__global__ void __launch_bounds__(256)
    merge_runs(const Key* from, std::int64_t rows, std::int64_t run, Key* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (i >= rows) return;
  const Key key = from[i];
  const std::int64_t first = i & ~(2 * run - 1), middle = first + run;
  const bool left = i < middle;
  std::int64_t low = left ? (middle < rows ? middle : rows) : first;
  std::int64_t high = left ? (middle + run < rows ? middle + run : rows) : middle;
  const std::int64_t start = low;
  while (low < high) {
    const std::int64_t half = (low + high) / 2;
    if (from[half] < key) {
      low = half + 1;
    } else {
      high = half;
    }
  }
  to[(left ? i : i - run) + low - start] = key;
}

// Returns the sorted keys: one of the two arrays, which have `rows` elements each.
Key* sort_tokens(const EmbeddingBackward& op, Key* keys, Key* spare, const ExecContext& context) {
  const std::int64_t rows = op.tokens.count();
  int threads = 32;
  while (threads < kSortThreads && 2 * threads < rows) threads *= 2;
  const std::int64_t tile = 2 * threads;
  launch(context.stream, {blocks_for(rows, tile), 1, threads, 0}, sort_tiles,
         op.tokens.as<std::int32_t>(), static_cast<std::int32_t>(op.first_token), rows, keys);
  for (std::int64_t run = tile; run < rows; run *= 2) {
    launch(context.stream, {blocks_for(rows, 256), 1, 256, 0}, merge_runs, keys, rows, run, spare);
    std::swap(keys, spare);
  }
  return keys;
}

constexpr int kThreads = 128, kAhead = 8;

template <class T, class G>
struct Arguments {
  const T* dout;
  G *dwte, *dwpe;
  std::int64_t rows, columns, sequence, first_position, vocab;
  DropoutSpec dropout;
  bool accumulate_wte, accumulate_wpe;
  const Key* keys;
  std::int64_t chunk;  // sorted rows of a block
  Math<T>* heads;      // [chunks][columns]: a chunk's part of the token of the chunk before
  Math<T> scale;       // of dwte
};

// A thread's columns. kPacked: all of them, in 16-byte packs.
template <bool kPacked>
struct Columns {
  std::int64_t first, length;
  __device__ explicit Columns(std::int64_t columns)
      : first((std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kRun),
        length(kPacked || columns - first >= kRun ? kRun : columns - first) {}
  template <class T, class A>
  __device__ __forceinline__ void load(const T* row, A (&values)[kRun]) const {
    load_run(row + first, kPacked ? kRun : length, kPacked, values);
  }
  template <class T, class A>
  __device__ __forceinline__ void store(T* row, const A (&values)[kRun]) const {
    store_run(row + first, kPacked ? kRun : length, kPacked, values);
  }
};

// dropout'(dout[row]).
template <bool kPacked, class T, class G>
__device__ __forceinline__ void load_gradient(const Arguments<T, G>& a, std::int64_t row,
                                              const Columns<kPacked>& columns,
                                              Math<T> (&values)[kRun]) {
  columns.load(a.dout + row * a.columns, values);
  apply_dropout(a.dropout, row * a.columns + columns.first, values);
}

template <class A>
__device__ __forceinline__ void add_run(const A (&values)[kRun], A (&sum)[kRun]) {
#pragma unroll
  for (int i = 0; i < kRun; ++i) sum[i] += values[i];
}

// target row (+)= scale * sum.
template <bool kPacked, class G, class A>
__device__ __forceinline__ void put_row(G* row, const Columns<kPacked>& columns, bool accumulate,
                                        A scale, A (&sum)[kRun]) {
#pragma unroll
  for (int i = 0; i < kRun; ++i) sum[i] *= scale;
  if (accumulate) {
    A before[kRun];
    columns.load(row, before);
    add_run(before, sum);
  }
  columns.store(row, sum);
}

// Block: a chunk of the sorted rows (grid x) and a tile of columns (grid y).
template <bool kPacked, class T, class G>
__global__ void __launch_bounds__(kThreads) sum_chunks(Arguments<T, G> a) {
  using A = Math<T>;
  const Columns<kPacked> columns(a.columns);
  if (columns.first >= a.columns) return;
  const std::int64_t begin = blockIdx.x * a.chunk;
  const std::int64_t end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
  bool head = begin > 0 && token_of(a.keys[begin - 1]) == token_of(a.keys[begin]);
  A sum[kRun] = {};
  for (std::int64_t first = begin; first < end; first += kAhead) {
    A values[kAhead][kRun];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {  // many loads under way; past the end the last row again
      const Key key = a.keys[first + j < end ? first + j : end - 1];
      load_gradient(a, row_of(key), columns, values[j]);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::int64_t i = first + j;
      if (i >= end) break;
      add_run(values[j], sum);
      const std::int64_t token = token_of(a.keys[i]);
      if (i + 1 < end && token_of(a.keys[i + 1]) == token) continue;
      if (head) {
        columns.store(a.heads + blockIdx.x * a.columns, sum);
      } else if (token < a.vocab) {
        put_row(a.dwte + token * a.columns, columns, a.accumulate_wte, a.scale, sum);
      }
      head = false;
#pragma unroll
      for (int c = 0; c < kRun; ++c) sum[c] = 0;
    }
  }
}

// A block per chunk and tile of columns; the one whose head is the first of its token adds the
// heads of all chunks that go on with it.
template <bool kPacked, class T, class G>
__global__ void __launch_bounds__(kThreads) add_heads(Arguments<T, G> a) {
  using A = Math<T>;
  const Columns<kPacked> columns(a.columns);
  const std::int64_t begin = blockIdx.x, first = begin * a.chunk, chunks = gridDim.x;
  const auto token_at = [&](std::int64_t i) { return token_of(a.keys[i]); };
  const std::int64_t token = token_at(first);
  if (columns.first >= a.columns || token >= a.vocab) return;
  if (begin == 0 || token_at(first - 1) != token) return;
  if (begin > 1 && token_at(first - a.chunk - 1) == token) return;
  std::int64_t end = begin + 1;
  for (std::int64_t high = chunks; end < high;) {  // first chunk that starts with another token
    const std::int64_t half = (end + high) / 2;
    if (token_at(half * a.chunk) == token) {
      end = half + 1;
    } else {
      high = half;
    }
  }
  A sum[kRun] = {};
  for (std::int64_t c = begin; c < end; c += kAhead) {
    A values[kAhead][kRun];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      columns.load(a.heads + (c + j < end ? c + j : end - 1) * a.columns, values[j]);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (c + j < end) add_run(values[j], sum);
    }
  }
  put_row(a.dwte + token * a.columns, columns, true, a.scale, sum);
}

// dwpe[position] (+)= sum over the batch, in order. Grid x: position.
template <bool kPacked, class T, class G>
__global__ void __launch_bounds__(kThreads) sum_positions(Arguments<T, G> a) {
  using A = Math<T>;
  const Columns<kPacked> columns(a.columns);
  if (columns.first >= a.columns) return;
  const std::int64_t position = blockIdx.x;
  A sum[kRun] = {};
  if (position >= a.first_position && position < a.first_position + a.sequence) {
#pragma unroll 4
    for (std::int64_t row = position - a.first_position; row < a.rows; row += a.sequence) {
      A values[kRun];
      load_gradient(a, row, columns, values);
      add_run(values, sum);
    }
  }
  put_row(a.dwpe + position * a.columns, columns, a.accumulate_wpe, A{1}, sum);
}

template <bool kPacked, class T, class G>
void launch_sums(const EmbeddingBackward& op, const Arguments<T, G>& a,
                 const ExecContext& context) {
  const std::int64_t tiles = blocks_for(a.columns, kThreads * kRun);
  if (a.rows > 0) {
    const std::int64_t chunks = blocks_for(a.rows, a.chunk);
    launch(context.stream, {chunks, tiles, kThreads, 0}, sum_chunks<kPacked, T, G>, a);
    if (chunks > 1) {
      launch(context.stream, {chunks, tiles, kThreads, 0}, add_heads<kPacked, T, G>, a);
    }
  }
  if (!op.dwpe.empty()) {
    launch(context.stream, {op.dwpe.rows(), tiles, kThreads, 0}, sum_positions<kPacked, T, G>, a);
  }
}

template <class T, class G>
void run(const EmbeddingBackward& op, const ExecContext& context) {
  using A = Math<T>;
  const std::int64_t rows = op.dout.rows(), columns = op.dout.columns();
  const std::int64_t key_bytes = rows * static_cast<std::int64_t>(sizeof(Key));
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(sizeof(A));
  require(rows < (std::int64_t{1} << 32), op.kName, "fewer than 2^32 tokens");
  if (2 * key_bytes + row_bytes > context.workspace_bytes) {
    throw Error(ErrorCode::failed, std::string(op.kName) + ": needs a workspace of at least " +
                                       std::to_string(2 * key_bytes + row_bytes) + " bytes, has " +
                                       std::to_string(context.workspace_bytes));
  }
  Arguments<T, G> a{op.dout.as<T>(),
                    op.dwte.as<G>(),
                    op.dwpe.as<G>(),
                    rows,
                    columns,
                    op.sequence,
                    op.first_position,
                    op.dwte.rows(),
                    op.dropout,
                    op.accumulate_wte,
                    op.accumulate_wpe,
                    nullptr,
                    32,
                    reinterpret_cast<A*>(context.workspace + 2 * key_bytes),
                    static_cast<A>(op.scale)};
  const std::int64_t heads = (context.workspace_bytes - 2 * key_bytes) / row_bytes;
  while (blocks_for(rows, a.chunk) > heads) a.chunk *= 2;
  if (rows > 0) {
    auto* keys = reinterpret_cast<Key*>(context.workspace);
    a.keys = sort_tokens(op, keys, keys + rows, context);
  }
  const bool packed = columns % kRun == 0 && aligned_16(op.dout.data, op.dwte.data, op.dwpe.data);
  if (packed) {
    launch_sums<true>(op, a, context);
  } else {
    launch_sums<false>(op, a, context);
  }
}

}  // namespace

void execute(const EmbeddingBackward& op, const ExecContext& context) {
  if (!op.accumulate_wte) execute(Fill{op.dwte, 0}, context);
  if (op.dwte.columns() == 0) return;
  require(op.dwpe.empty() || op.dwpe.dtype == op.dwte.dtype, op.kName, "dwte and dwpe of one type");
  with_gradient_type(op.dout.dtype, op.dwte.dtype, op.kName, [&](auto type, auto gradient) {
    run<decltype(type), decltype(gradient)>(op, context);
  });
}

}  // namespace zl::cuda
