#include "core/model/initial_weights.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"
#include "core/ops/elementwise.h"

#include <algorithm>

namespace zl {

void draw_initial(RankContext& context, const ParameterSpec& spec, std::uint64_t seed,
                  std::int64_t begin, const TensorView& view) {
  const TensorView flat = view.flat();
  if (spec.init == InitKind::normal) {
    const RngKey key{seed, 0, weights_stream(spec.number)};
    context.run(RandomNormal{flat, spec.std, key, static_cast<std::uint64_t>(begin)});
  } else {
    context.run(Fill{flat, spec.init == InitKind::ones ? 1.0 : 0.0});
  }
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
