#include "backends/cpu/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "backends/cpu/ops/ops.h"

namespace zl::cpu {
namespace {

// Slabs of all ranks together: the kernel would promise more than there is and kill us later.
std::atomic<std::int64_t> reserved_bytes{0};

std::int64_t physical_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "cpu";
}

// An event names an empty task of a stream, so that no two events are the same; on the compute
// stream, where everything before it is done, it only has a number.
EventId make_event(StreamId stream, std::int64_t task) {
  return task * static_cast<EventId>(kStreams) + static_cast<EventId>(stream);
}
StreamId stream_of(EventId event) {
  return static_cast<StreamId>(event % static_cast<EventId>(kStreams));
}
std::int64_t task_of(EventId event) { return event / static_cast<EventId>(kStreams); }

void execute_op(const Op& op, const ExecContext& context) {
  std::visit([&](const auto& each) { execute(each, context); }, op);
}

}  // namespace

Device::Device(int threads, Stream::OnFailure on_failure)
    : threads_(threads), on_failure_(std::move(on_failure)) {}

Device::~Device() { drain(); }

DeviceProperties Device::properties() const {
  DeviceProperties properties;
  properties.name = processor_name();
  properties.memory = physical_memory();
  return properties;
}

std::byte* Device::reserve(MemorySpace, std::int64_t bytes) {
  if ((reserved_bytes += bytes) > physical_memory()) {
    reserved_bytes -= bytes;
    return nullptr;
  }
  const auto size = static_cast<std::size_t>(bytes);
  void* slab = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (slab == MAP_FAILED) {
    reserved_bytes -= bytes;
    return nullptr;
  }
  madvise(slab, size, MADV_HUGEPAGE);  // a hint: small pages work too
  return static_cast<std::byte*>(slab);
}

void Device::release(MemorySpace, std::byte* slab, std::int64_t bytes) {
  drain();
  munmap(slab, static_cast<std::size_t>(bytes));
  reserved_bytes -= bytes;
}

void Device::run(StreamId stream, const Op& op, Timing* timing) {
  if (stream == StreamId::compute) {
    run_timed([&] { execute_op(op, {threads_}); }, timing);
  } else {
    const int threads = stream == StreamId::host ? threads_ : 1;
    worker(stream).enqueue([op, threads] { execute_op(op, {threads}); }, timing);
  }
}

void Device::copy(StreamId stream, std::byte* destination, const std::byte* source,
                  std::int64_t bytes, Timing* timing) {
  enqueue(
      stream, [=] { std::memmove(destination, source, static_cast<std::size_t>(bytes)); }, timing);
}

EventId Device::record(StreamId stream) {
  rethrow_failures();
  if (stream == StreamId::compute) return make_event(stream, ++compute_events_);
  worker(stream).enqueue([] {}, nullptr);
  return make_event(stream, worker(stream).last());
}

void Device::wait(StreamId stream, EventId event) {
  rethrow_failures();
  if (stream_of(event) == StreamId::compute || stream_of(event) == stream) return;
  Stream& source = worker(stream_of(event));
  if (stream == StreamId::compute) {
    source.wait(task_of(event));
    rethrow_failures();
  } else {
    worker(stream).enqueue([&source, task = task_of(event)] { source.wait(task); }, nullptr);
  }
}

void Device::synchronize(StreamId stream) {
  const auto& started = workers_.at(static_cast<std::size_t>(stream));
  if (started) started->wait(started->last());
  rethrow_failures();
}

double Device::read(StreamId stream, ProbeKind, const TensorView& scalar) {
  synchronize(stream);
  ZL_CHECK(scalar.dtype == DType::f32 || scalar.dtype == DType::f64, "probes are fp32 or fp64");
  return scalar.dtype == DType::f64 ? *scalar.as<double>() : double{*scalar.as<float>()};
}

void Device::enqueue(StreamId stream, std::function<void()> work, Timing* timing) {
  if (stream == StreamId::compute) {
    run_timed(work, timing);
  } else {
    worker(stream).enqueue(std::move(work), timing);
  }
}

void Device::drain() {
  for (const auto& stream : workers_) {
    if (!stream || stream->idle()) continue;
    // The work may be a collective whose other ranks will never come.
    if (std::uncaught_exceptions() > 0 && on_failure_) on_failure_("an exception ended it");
    stream->wait(stream->last());
  }
}

std::vector<std::exception_ptr> Device::finish() {
  drain();
  std::vector<std::exception_ptr> failures;
  for (const auto& stream : workers_) {
    if (!stream) continue;
    try {
      stream->rethrow();
    } catch (...) {
      failures.push_back(std::current_exception());
    }
  }
  return failures;
}

Stream& Device::worker(StreamId stream) {
  auto& slot = workers_.at(static_cast<std::size_t>(stream));
  if (!slot) slot = std::make_unique<Stream>(on_failure_);
  return *slot;
}

void Device::rethrow_failures() {
  for (const auto& stream : workers_) {
    if (stream) stream->rethrow();
  }
}

}  // namespace zl::cpu
