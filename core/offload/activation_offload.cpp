#include "core/offload/activation_offload.h"

#include <utility>

#include "core/offload/placement.h"

namespace zl {

void ActivationOffload::put(int slot, int layer, Tensor kept) {
  Tensor& host = host_[{slot, layer}];
  if (host.view.empty()) {
    host = context_.allocate(kept.view.dtype, kept.view.shape, MemoryTag::activation,
                             {"block input", layer + 1}, host_space(offload_));
  }
  context_.wait(StreamId::copy_out, context_.record(StreamId::compute));
  context_.copy(StreamId::copy_out, Route::device_to_host, host, kept);
  leaving_.push_back({std::move(kept), context_.record(StreamId::copy_out)});
  retire(1);
}

// Frees the oldest on their way until `keep` remain.
void ActivationOffload::retire(std::size_t keep) {
  while (leaving_.size() > keep) {
    context_.wait(StreamId::compute, leaving_.front().event);
    leaving_.pop_front();
  }
}

void ActivationOffload::fetch(int slot, int layer) {
  if (coming_.contains({slot, layer})) return;
  const Tensor& host = host_.at({slot, layer});
  Coming coming;
  coming.tensor = context_.allocate(host.view.dtype, host.view.shape, MemoryTag::activation,
                                    {"block input", layer + 1});
  // The block may have been used by earlier work of the compute stream, which by now has also
  // waited for the copy to the host.
  context_.wait(StreamId::copy_in, context_.record(StreamId::compute));
  context_.copy(StreamId::copy_in, Route::host_to_device, coming.tensor, host);
  coming.event = context_.record(StreamId::copy_in);
  coming_.emplace(Place{slot, layer}, std::move(coming));
}

Tensor ActivationOffload::take(int slot, int layer) {
  fetch(slot, layer);
  auto found = coming_.extract({slot, layer});
  context_.wait(StreamId::compute, found.mapped().event);
  return std::move(found.mapped().tensor);
}

}  // namespace zl
