#include "core/threads/call_text.h"

#include <algorithm>

namespace zl {

bool same(const Call& a, const Call& b) {
  const auto same_tensors = [](const Segment& x, const Segment& y) {
    return x.source.dtype == y.source.dtype && x.source.count() == y.source.count() &&
           x.destination.count() == y.destination.count();
  };
  return a.kind == b.kind && a.op == b.op && a.purpose == b.purpose &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                    same_tensors);
}

std::string describe(const Call& call) {
  constexpr const char* kOps[] = {"sum", "average", "max"};
  constexpr std::size_t kShown = 8;
  const bool reduces =
      call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::reduce_scatter;
  const std::size_t tensors = call.segments.size();
  std::string text = zl::name_of(call.kind);
  if (reduces) text += std::string(" (") + kOps[static_cast<std::size_t>(call.op)] + ")";
  text += " of " + std::to_string(tensors) + (tensors == 1 ? " tensor " : " tensors ");
  text += zl::name_of(call.segments.front().source.dtype);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < tensors; ++i) {
    const std::int64_t count = call.segments[i].source.count();
    total += count;
    if (i < kShown) text += (i ? ", " : " [") + std::to_string(count);
  }
  if (tensors > kShown) text += ", ... " + std::to_string(total) + " elements in all";
  return text + "] (group " + zl::name_of(call.purpose) + ")";
}

}  // namespace zl
