#include "core/zero/secondary_shards.h"

#include "core/ops/elementwise.h"

namespace zl {

SecondaryShards::SecondaryShards(RankContext& context, DType dtype, const Partition& partition,
                                 const std::vector<bool>& is_gathered)
    : context_(context) {
  const int ranks = context.ranks(Axis::secondary);
  if (ranks == 1) return;
  std::int64_t elements = 0;
  for (std::size_t p = 0; p < partition.size(); ++p) {
    offsets_.push_back(elements);
    counts_.push_back(is_gathered[p] ? partition.slot(static_cast<int>(p)).padded / ranks : 0);
    elements += counts_.back();
  }
  if (elements == 0) return;
  storage_ =
      context.allocate(dtype, Shape{elements}, MemoryTag::parameter, {"secondary weight shards"});
}

TensorView SecondaryShards::part(int parameter) const {
  return storage_.view.flat(offsets_[parameter], counts_[parameter]);
}

void SecondaryShards::keep(int parameter, const TensorView& whole) {
  const std::int64_t count = counts_[parameter];
  context_.run(Axpy{whole.flat(count * context_.rank(Axis::secondary), count), part(parameter)});
}

}  // namespace zl
