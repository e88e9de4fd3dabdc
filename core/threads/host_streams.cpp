#include "core/threads/host_streams.h"

#include <utility>

namespace zl {

HostStreams::HostStreams(HostStream::OnFailure on_failure, std::function<void()> on_start)
    : on_failure_(std::move(on_failure)), on_start_(std::move(on_start)) {}

std::int64_t HostStreams::mark(StreamId stream) {
  at(stream).enqueue([] {}, nullptr);
  return at(stream).last();
}

void HostStreams::wait(StreamId stream, StreamId source, std::int64_t mark) {
  if (stream == source) return;
  at(stream).enqueue([&from = at(source), mark] { from.wait(mark); }, nullptr);
}

void HostStreams::synchronize(StreamId stream) {
  const auto& started = streams_.at(static_cast<std::size_t>(stream));
  if (started) started->wait(started->last());
}

void HostStreams::synchronize() {
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    synchronize(static_cast<StreamId>(stream));
  }
}

bool HostStreams::idle() const {
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    if (!idle(static_cast<StreamId>(stream))) return false;
  }
  return true;
}

bool HostStreams::idle(StreamId stream) const {
  const auto& started = streams_.at(static_cast<std::size_t>(stream));
  return !started || started->idle();
}

bool HostStreams::has_passed(StreamId source, std::int64_t mark) const {
  const auto& started = streams_.at(static_cast<std::size_t>(source));
  return started && started->has_run(mark);
}

void HostStreams::rethrow() {
  for (const auto& stream : streams_) {
    if (stream) stream->rethrow();
  }
}

std::vector<std::exception_ptr> HostStreams::finish() {
  synchronize();
  std::vector<std::exception_ptr> failures;
  for (auto& stream : streams_) {
    if (!stream) continue;
    try {
      stream->rethrow();
    } catch (...) {
      failures.push_back(std::current_exception());
    }
    stream.reset();
  }
  return failures;
}

HostStream& HostStreams::at(StreamId stream) {
  auto& slot = streams_.at(static_cast<std::size_t>(stream));
  if (!slot) slot = std::make_unique<HostStream>(on_failure_, on_start_);
  return *slot;
}

}  // namespace zl
