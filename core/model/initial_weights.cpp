#include "core/model/initial_weights.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"
#include "core/ops/elementwise.h"

#include <algorithm>

namespace zl {

namespace {

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

void draw_initial(RankContext& context, const ParameterSpec& spec, std::uint64_t seed,
                  std::int64_t begin, const TensorView& view) {
  const TensorView flat = view.flat();
  if (spec.init != InitKind::normal) {
    context.run(Fill{flat, spec.init == InitKind::ones ? 1.0 : 0.0});
    return;
  }
  const RngKey key{seed, 0, weights_stream(spec.number)};
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

void HostDraw::operator()(const ParameterSpec& spec, std::uint64_t seed, std::int64_t begin,
                          const TensorView& view) {
  for (std::int64_t done = 0; done < view.count(); done += slice_.view.count()) {
    const std::int64_t count = std::min(slice_.view.count(), view.count() - done);
    const TensorView drawn = slice_.view.flat(0, count);
    draw_initial(context_, spec, seed, begin + done, drawn);
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
