#include "core/threads/call_text.h"

#include <algorithm>

namespace zl {

bool same(const Call& a, const Call& b) {
  const auto same_tensors = [](const Segment& x, const Segment& y) {
    return x.source.dtype == y.source.dtype && x.source.count() == y.source.count() &&
           x.destination.count() == y.destination.count();
  };
  return a.kind == b.kind && a.op == b.op && a.purpose == b.purpose && a.splits == b.splits &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                    same_tensors);
}

namespace {

std::string describe(const Scope& scope) {
  if (scope.step == 0) return "";  // outside steps
  std::string text = std::string(", ") + zl::name_of(scope.phase);
  if (scope.unit >= 0) text += " of unit " + std::to_string(scope.unit);
  return text + ", step " + std::to_string(scope.step) + " of this run";
}

}  // namespace

std::string describe(const Call& call) {
  constexpr const char* kOps[] = {"sum", "average", "max"};
  constexpr std::size_t kShown = 8;
  if (call.splits) return "split";
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
  return text + "] (group " + zl::name_of(call.purpose) + ")" + describe(call.scope);
}

bool same(const Message& a, const Message& b) {
  return a.tensor.dtype == b.tensor.dtype && a.tensor.count() == b.tensor.count();
}

std::string describe_tensor(const Message& message) {
  return std::string(name_of(message.tensor.dtype)) + " [" +
         std::to_string(message.tensor.count()) + "]";
}

std::string describe(const Message& message, int peer) {
  return (message.sends ? "to send " : "to receive ") + describe_tensor(message) +
         (message.sends ? " to rank " : " from rank ") + std::to_string(peer) +
         describe(message.scope);
}

std::string describe(std::span<const Message> messages) {
  constexpr std::size_t kShown = 4;
  std::string text =
      std::to_string(messages.size()) + (messages.size() == 1 ? " message" : " messages");
  for (std::size_t i = 0; i < messages.size() && i < kShown; ++i) {
    text += ", " + describe(messages[i], messages[i].peer);
  }
  return text + (messages.size() > kShown ? ", ..." : "");
}

std::string describe_mismatch(const MessageSides& sides) {
  const std::string from = std::to_string(sides.from), to = std::to_string(sides.to);
  return "message mismatch at #" + std::to_string(sides.number) + " from rank " + from +
         " to rank " + to + " on the stream '" + name_of(sides.stream) + "': rank " + from +
         " sends " + sides.sent + ", rank " + to + " receives " + sides.received;
}

std::string describe_wait(int rank, std::int64_t number, StreamId stream, const std::string& what) {
  return "rank " + std::to_string(rank) + " waits at #" + std::to_string(number) +
         " of the stream '" + name_of(stream) + "' " + what;
}

}  // namespace zl
