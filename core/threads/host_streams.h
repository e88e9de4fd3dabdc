// The streams of one device that have threads of the host's, and how they wait for each other.
// Ownership: owns its streams, which start with their first task. Threads: one rank's thread.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "core/device/device.h"
#include "core/threads/host_stream.h"

namespace zl {

class HostStreams {
 public:
  // As HostStream's, for each of them.
  explicit HostStreams(HostStream::OnFailure on_failure, std::function<void()> on_start = {});

  void enqueue(StreamId stream, std::function<void()> work, Timing* timing) {
    at(stream).enqueue(std::move(work), timing);
  }
  // Number of an empty task at the end of the stream, so that no two marks are the same.
  std::int64_t mark(StreamId stream);
  // `stream` goes on only when `source` has passed its mark.
  void wait(StreamId stream, StreamId source, std::int64_t mark);
  // The caller goes on only then.
  void wait(StreamId source, std::int64_t mark) { at(source).wait(mark); }
  // Waits for the tasks of one stream, or of all.
  void synchronize(StreamId stream);
  void synchronize();
  bool idle() const;
  bool idle(StreamId stream) const;
  // Whether `source` has passed its mark.
  bool has_passed(StreamId source, std::int64_t mark) const;
  // Throws the first failure that nobody has been told of.
  void rethrow();
  // Waits for all tasks, ends the threads, which start again with the next task, and returns the
  // failures that nobody has been told of.
  std::vector<std::exception_ptr> finish();

 private:
  HostStream& at(StreamId stream);

  HostStream::OnFailure on_failure_;
  std::function<void()> on_start_;
  std::array<std::unique_ptr<HostStream>, kStreams> streams_;
};

}  // namespace zl
