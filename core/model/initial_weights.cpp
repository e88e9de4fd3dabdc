#include "core/model/initial_weights.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"
#include "core/ops/elementwise.h"

namespace zl {

namespace {

template <class T>
void store_as(const std::vector<float>& values, std::vector<std::byte>& bytes) {
  T* out = reinterpret_cast<T*>(bytes.data());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = from_float<T>(values[i]);
}

std::vector<std::byte> in_type(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  switch (dtype) {
    case DType::f64:
      store_as<double>(values, bytes);
      break;
    case DType::f32:
      store_as<float>(values, bytes);
      break;
    case DType::bf16:
      store_as<bfloat16>(values, bytes);
      break;
    case DType::f16:
      store_as<float16>(values, bytes);
      break;
    default:
      throw Error(ErrorCode::invalid, std::string("weights are not ") + name_of(dtype));
  }
  return bytes;
}

// By runs that lie together in the whole parameter; padding is zero.
void read_values(const ParameterSpec& spec, const WeightSource& source, std::int64_t begin,
                 std::span<float> out) {
  const auto count = static_cast<std::int64_t>(out.size());
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t place = spec.place(begin + done);
    const std::int64_t run = std::min(spec.run(begin + done), count - done);
    const std::span<float> part = out.subspan(done, run);
    if (place < 0) {
      std::fill(part.begin(), part.end(), 0.0F);
    } else {
      source.read(spec.number, place, part);
    }
    done += run;
  }
}

void load_initial(RankContext& context, const ParameterSpec& spec, const WeightSource& source,
                  std::int64_t begin, const TensorView& flat) {
  constexpr std::int64_t kSlice = std::int64_t{1} << 20;
  std::vector<float> values;
  for (std::int64_t done = 0; done < flat.count(); done += kSlice) {
    const std::int64_t count = std::min(kSlice, flat.count() - done);
    values.resize(static_cast<std::size_t>(count));
    read_values(spec, source, begin + done, values);
    const std::vector<std::byte> bytes = in_type(values, flat.dtype);
    context.upload(StreamId::compute, flat.flat(done, count), bytes.data());
    context.synchronize(StreamId::compute);  // the bytes go now
  }
}

// Normal numbers by their place in the whole parameter: elements [begin, ..) of `flat` are those of
// whole rows from `row` on, of which `first` elements come before.
void draw_rows(RankContext& context, const ParameterSpec& spec, const RngKey& key, std::int64_t row,
               std::int64_t first, const TensorView& flat) {
  RandomNormal draw{.x = flat, .std = spec.std, .key = key};
  const std::int64_t columns = spec.count() / spec.shape[0];
  if (spec.whole_columns == 0) {
    draw.base = static_cast<std::uint64_t>(row * columns + first);
  } else {
    draw.base = static_cast<std::uint64_t>(row * spec.whole_columns + spec.column);
    draw.columns = columns;
    draw.stride = spec.whole_columns;
    draw.first = first;
  }
  context.run(draw);
}

}  // namespace

void draw_initial(RankContext& context, const ParameterSpec& spec, const InitialWeights& initial,
                  std::int64_t begin, const TensorView& view) {
  const TensorView flat = view.flat();
  if (initial.source != nullptr && initial.source->has(spec.number)) {
    return load_initial(context, spec, *initial.source, begin, flat);
  }
  if (spec.init != InitKind::normal) {
    context.run(Fill{flat, spec.init == InitKind::ones ? 1.0 : 0.0});
    return;
  }
  const RngKey key{initial.seed, 0, weights_stream(spec.number)};
  if (spec.rows.empty()) return draw_rows(context, spec, key, 0, begin, flat);
  const std::int64_t columns = spec.count() / spec.shape[0], end = begin + flat.count();
  std::int64_t part = 0, drawn = begin;  // where the rows begin in this rank's part
  for (const ParameterSpec::Rows& rows : spec.rows) {
    const std::int64_t next = part + rows.count * columns, last = std::min(next, end);
    if (drawn < last) {
      draw_rows(context, spec, key, rows.first, drawn - part,
                flat.flat(drawn - begin, last - drawn));
      drawn = last;
    }
    part = next;
  }
  if (drawn < end) context.run(Fill{flat.flat(drawn - begin, end - drawn), 0});
}

HostDraw::HostDraw(RankContext& context, DType dtype) : context_(context) {
  constexpr std::int64_t kSlice = std::int64_t{1} << 18;
  slice_ = context.allocate(dtype, Shape{kSlice}, MemoryTag::workspace, {"initial weights"});
}

void HostDraw::operator()(const ParameterSpec& spec, const InitialWeights& initial,
                          std::int64_t begin, const TensorView& view) {
  for (std::int64_t done = 0; done < view.count(); done += slice_.view.count()) {
    const std::int64_t count = std::min(slice_.view.count(), view.count() - done);
    const TensorView drawn = slice_.view.flat(0, count);
    draw_initial(context_, spec, initial, begin + done, drawn);
    context_.copy(StreamId::compute, Route::device_to_host, view.flat(done, count), drawn);
  }
}

void HostDraw::zero(const TensorView& view) {
  for (std::int64_t done = 0; done < view.count(); done += slice_.view.count()) {
    const std::int64_t count = std::min(slice_.view.count(), view.count() - done);
    const TensorView zeros = slice_.view.flat(0, count);
    context_.run(Fill{zeros, 0});
    context_.copy(StreamId::compute, Route::device_to_host, view.flat(done, count), zeros);
  }
}

}  // namespace zl
