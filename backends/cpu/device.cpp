#include "backends/cpu/device.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include "backends/cpu/ops/ops.h"
#include "backends/cpu/slab.h"
#include "core/base/machine_memory.h"
#include "core/ops/op.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace zl::cpu {
namespace {

// Slabs of all ranks together: the kernel would promise more than there is and kill us later.
class Reservations {
 public:
  bool add(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes_ == 0) limit_ = machine_memory();
    if (bytes > limit_ - bytes_) return false;
    bytes_ += bytes;
    return true;
  }
  void remove(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
  }

 private:
  std::mutex mutex_;
  std::int64_t bytes_ = 0, limit_ = 0;
};
Reservations reservations;

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

// Libraries that open teams of their own find one thread on a stream's thread.
void limit_threads() {
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
}

}  // namespace

void run_op(const Op& op, int threads) {
  std::visit([&](const auto& each) { execute(each, ExecContext{threads}); }, op);
}

Device::Device(DeviceOptions options)
    : options_(std::move(options)), workers_(options_.on_failure, limit_threads) {}

Device::~Device() { drain(); }

DeviceProperties Device::properties() const {
  DeviceProperties properties;
  properties.name = processor_name();
  properties.memory = physical_memory();
  properties.host_memory = options_.host_memory;
  properties.memory_is_host = true;
  return properties;
}

std::byte* Device::reserve(MemorySpace, std::int64_t bytes) {
  if (!reservations.add(bytes)) return nullptr;
  std::byte* slab = map_slab(bytes);
  if (slab == nullptr) reservations.remove(bytes);
  return slab;
}

void Device::release(MemorySpace, std::byte* slab, std::int64_t bytes) {
  drain();
  unmap_slab(slab, bytes);
  reservations.remove(bytes);
}

void Device::run(StreamId stream, const Op& op, Timing* timing) {
  if (is_at_once(stream)) {
    run_timed([&] { run_op(op, options_.threads); }, timing);
  } else {
    workers_.enqueue(
        stream, [op, threads = worker_threads(stream)] { run_op(op, threads); }, timing);
  }
}

void Device::copy(StreamId stream, std::byte* destination, const std::byte* source,
                  std::int64_t bytes, Timing* timing) {
  enqueue(
      stream, [=](int) { std::memmove(destination, source, bytes); }, timing);
}

EventId Device::record(StreamId stream) {
  workers_.rethrow();
  if (is_at_once(stream)) return make_event(StreamId::compute, ++compute_events_);
  return make_event(stream, workers_.mark(stream));
}

void Device::wait(StreamId stream, EventId event) {
  workers_.rethrow();
  const StreamId source = stream_of(event);
  if (source == StreamId::compute) return;
  if (stream == StreamId::compute) {
    workers_.wait(source, task_of(event));
    workers_.rethrow();
  } else if (!is_at_once(stream) || !workers_.has_passed(source, task_of(event))) {
    workers_.wait(stream, source, task_of(event));
  }
}

void Device::synchronize(StreamId stream) {
  workers_.synchronize(stream);
  workers_.rethrow();
}

double Device::read(StreamId stream, ProbeKind, const TensorView& scalar) {
  synchronize(stream);
  ZL_CHECK(scalar.dtype == DType::f32 || scalar.dtype == DType::f64, "probes are fp32 or fp64");
  return scalar.dtype == DType::f64 ? *scalar.as<double>() : double{*scalar.as<float>()};
}

void Device::enqueue(StreamId stream, std::function<void()> work, Timing* timing) {
  enqueue(
      stream, [work = std::move(work)](int) { work(); }, timing);
}

void Device::enqueue(StreamId stream, std::function<void(int threads)> work, Timing* timing) {
  if (is_at_once(stream)) {
    run_timed([&] { work(options_.threads); }, timing);
  } else {
    workers_.enqueue(
        stream, [work = std::move(work), threads = worker_threads(stream)] { work(threads); },
        timing);
  }
}

void Device::drain() {
  if (workers_.idle()) return;
  // The work may be a collective whose other ranks will never come.
  if (std::uncaught_exceptions() > 0 && options_.on_failure) {
    options_.on_failure("an exception ended it");
  }
  workers_.synchronize();
}

std::vector<std::exception_ptr> Device::finish() { return workers_.finish(); }

}  // namespace zl::cpu
