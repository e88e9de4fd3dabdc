#include "core/pipeline/stage_messages.h"

#include <utility>

#include "core/base/error.h"

namespace zl {

void StageMessages::exchange(int peer, bool sends, const TensorView& tensor) {
  const Message message{.peer = peer, .sends = sends, .tensor = tensor};
  context_.exchange(StreamId::communication, Axis::pipeline, {&message, 1});
}

void StageMessages::receive(const StageMessage& message, DType dtype, std::int64_t rows,
                            std::int64_t hidden) {
  Held& held = held_[message];
  held.tensor = context_.allocate(dtype, {rows, hidden}, MemoryTag::communication,
                                  {message.forward ? "received stream" : "received gradient"});
  // The memory may have been another tensor's until now.
  context_.wait(StreamId::communication, context_.record(StreamId::compute));
  exchange(pipeline_.rank_of(message.stage + (message.forward ? -1 : 1)), false, held.tensor);
  held.event = context_.record(StreamId::communication);
}

Tensor StageMessages::take(const StageMessage& message) {
  const auto found = held_.find(message);
  ZL_CHECK(found != held_.end(), "a stage takes what was received or handed over");
  Held held = std::move(found->second);
  held_.erase(found);
  if (held.event >= 0) context_.wait(StreamId::compute, held.event);
  return std::move(held.tensor);
}

void StageMessages::hand_over(const StageMessage& message, Tensor tensor) {
  Held& held = held_[message];
  held.tensor = std::move(tensor);
  held.made = context_.record(StreamId::compute);
}

void StageMessages::send(const StageMessage& message) {
  Held& held = held_.at(message);
  context_.wait(StreamId::communication, held.made);
  exchange(pipeline_.rank_of(message.stage), true, held.tensor);
  held.event = context_.record(StreamId::communication);
}

void StageMessages::release(const StageMessage& message) {
  const auto found = held_.find(message);
  ZL_CHECK(found != held_.end() && found->second.event >= 0, "only what was sent is released");
  context_.wait(StreamId::compute, found->second.event);
  held_.erase(found);
}

void StageMessages::skip(int micro_batches) {
  std::map<StageMessage, Held> later;
  for (auto& [message, held] : held_) {
    later[{message.stage, message.micro + micro_batches, message.forward}] = std::move(held);
  }
  held_ = std::move(later);
}

}  // namespace zl
