#include "simulator/planner/shared_bucket.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "core/zero/sharded_gradients.h"

namespace zl::sim {
namespace {

std::set<std::int64_t> bucket_sizes(const Trace& trace) {
  std::set<std::int64_t> sizes;
  for (const TraceEvent& event : trace.events()) {
    const bool is_bucket =
        event.type == EventType::allocate && std::string_view(event.what) == kGradientBucket;
    if (is_bucket) sizes.insert(event.bytes_written);
  }
  return sizes;
}

}  // namespace

std::int64_t SharedBucket::change_of(const TraceEvent& event) const {
  const bool comes = event.type == EventType::allocate;
  const bool moves = comes || event.type == EventType::free;
  if (event.space != MemorySpace::device || !moves) return 0;
  const bool is_it = event.bytes_written == recorded &&
                     static_cast<MemoryTag>(event.kind) == MemoryTag::communication;
  const std::int64_t bytes = is_it ? read : event.bytes_written;
  return comes ? bytes : -bytes;
}

SharedBucket shared_bucket(const Trace& recorded, const Trace& longer) {
  const std::set<std::int64_t> own = bucket_sizes(recorded), other = bucket_sizes(longer);
  std::vector<std::int64_t> here, there;
  std::ranges::set_difference(own, other, std::back_inserter(here));
  std::ranges::set_difference(other, own, std::back_inserter(there));
  if (here.size() != 1 || there.size() != 1) return {};
  return {here.front(), there.front()};
}

}  // namespace zl::sim
