// What the engine of one rank talks to: a device and a communicator, with the pool, ledger and
// trace that are the same for every backend. Everything the engine does passes here once and is
// recorded. Ownership: refers to the device and communicator, owns the rest. Threads: used by one
// rank's thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/device.h"
#include "core/device/storage.h"
#include "core/ops/cost.h"
#include "core/parallel/groups.h"
#include "core/rank/ledger.h"
#include "core/rank/pool.h"
#include "core/trace/trace.h"

namespace zl {

// A pool block seen as one tensor. Converts to the view that ops take.
struct Tensor {
  Buffer buffer;
  TensorView view;

  operator const TensorView&() const { return view; }  // NOLINT: a Tensor is a view that owns
  void reset() {
    buffer.reset();
    view = {};
  }
};

// An object of the rank's file tier, counted in the ledger while this lives. Move-only.
class StoredObject {
 public:
  StoredObject() = default;
  StoredObject(Ledger* ledger, ObjectId id, const ObjectLayout& layout, MemoryTag tag);
  StoredObject(StoredObject&& other) noexcept { *this = std::move(other); }
  StoredObject& operator=(StoredObject&& other) noexcept;
  ~StoredObject();

  ObjectId id() const { return id_; }
  const ObjectLayout& layout() const { return layout_; }

 private:
  Ledger* ledger_ = nullptr;
  ObjectId id_ = -1;
  ObjectLayout layout_;
  MemoryTag tag_{};
};

struct RankOptions {
  std::int64_t device_memory = 0;  // budget of the device pool; 0: none
  bool record_trace = true;
  bool record_accesses = false;   // for find_hazards
  std::int64_t host_memory = 0;   // budget of each host pool; 0: none but the machine's share
  std::optional<Mesh> mesh = {};  // none: all ranks are data parallel
};

class RankContext : private AllocationObserver {
 public:
  RankContext(Device& device, Communicator& communicator, const RankOptions& options = {});
  ~RankContext() override;
  RankContext(const RankContext&) = delete;
  RankContext& operator=(const RankContext&) = delete;

  // In the world.
  int rank() const { return groups_.world().rank(); }
  int ranks() const { return groups_.world().size(); }
  // In this rank's group of an axis.
  int rank(Axis axis) const { return groups_.rank(axis); }
  int ranks(Axis axis) const { return groups_.size(axis); }
  const Mesh& mesh() const { return groups_.mesh(); }
  const Ledger& ledger() const { return ledger_; }
  const Trace& trace() const { return trace_; }
  Trace& trace() { return trace_; }
  const std::vector<TensorAccess>& accesses() const { return accesses_; }
  std::int64_t reserved(MemorySpace space) const { return pool(space).reserved(); }

  Tensor allocate(DType dtype, const Shape& shape, MemoryTag tag, Label label,
                  MemorySpace space = MemorySpace::device);

  // [count] elements that start on a page and have room to the end of their last one, as the parts
  // of objects must.
  Tensor allocate_pages(DType dtype, std::int64_t count, MemoryTag tag, Label label,
                        MemorySpace space);

  // Validates, records and enqueues an op. Defined for every op in run_op.cpp, so that a caller
  // needs to know only the ops that it runs.
  template <class T>
  void run(StreamId stream, const T& op);
  template <class T>
  void run(const T& op) {
    run(StreamId::compute, op);
  }

  // Among the ranks of the collective's axis.
  void collective(StreamId stream, const Collective& collective);
  // Among the ranks of an axis, by their ranks in that group (Communicator::exchange).
  void exchange(StreamId stream, Axis axis, std::span<const Message> messages);
  // Copies host memory of the caller to the device; the host memory must live until the stream is
  // synchronised.
  void upload(StreamId stream, const TensorView& destination, const void* source);
  void download(StreamId stream, void* destination, const TensorView& source);
  // Between device memory and host memory of the pools; same count and type.
  void copy(StreamId stream, Route route, const TensorView& destination, const TensorView& source,
            Purpose purpose = Purpose::data);

  // The file tier; required before objects are made. `storage` must outlive the context's work.
  void use_storage(Storage* storage) { storage_ = storage; }
  StoredObject create_object(const std::string& name, const ObjectLayout& layout, MemoryTag tag);
  // Whole objects, on a file stream. parts: host views, in the layout's order.
  void read_object(const StoredObject& object, const std::vector<TensorView>& parts);
  void write_object(const StoredObject& object, const std::vector<TensorView>& parts);

  EventId record(StreamId stream);
  void wait(StreamId stream, EventId event);
  void synchronize(StreamId stream);
  double read(ProbeKind what, const TensorView& scalar);

  Scope& scope() { return scope_; }
  Device& device() { return device_; }
  // Whether the device times what it runs from now on (it does at first); the books do not need it.
  void time_events(bool timed) { timed_ = timed; }

 private:
  void move(StreamId stream, Route route, Purpose purpose, const TensorView& destination,
            const TensorView& source);
  void transfer(const StoredObject& object, const std::vector<TensorView>& parts, Route route);
  const Pool& pool(MemorySpace space) const { return *pools_[static_cast<std::size_t>(space)]; }
  void lend_workspace(std::int64_t bytes);
  TraceEvent event(EventType type, StreamId stream) const;
  // Appends the event; where its execution is to be timed.
  Timing* append(const TraceEvent& record);
  Timing* record_op(StreamId stream, std::uint8_t kind, const Cost& cost, DType dtype);
  void record_access(const TensorView& view, Access access);
  void on_allocate(MemorySpace, MemoryTag, Label, std::int64_t bytes, const std::byte*) override;
  void on_free(MemorySpace, MemoryTag, std::int64_t bytes, const std::byte*) override;
  TraceEvent& record_memory(EventType, MemorySpace, MemoryTag, std::int64_t bytes,
                            const std::byte*);

  Device& device_;
  Groups groups_;
  RankOptions options_;
  Ledger ledger_;
  Trace trace_;
  std::vector<TensorAccess> accesses_;
  MemoryShare host_share_;
  std::array<std::unique_ptr<Pool>, kMemorySpaces> pools_;
  Scope scope_;
  bool timed_ = true;
  Storage* storage_ = nullptr;
  Tensor workspace_;  // lent to the device
};

// Sets phase and unit for the enclosed block, where they are given micro-batch and chunk too, and
// tells the device.
class ScopeGuard {
 public:
  ScopeGuard(RankContext& context, Phase phase, int unit)
      : context_(context), saved_(context.scope()) {
    context.device().enter(phase, unit);
    context.scope().phase = phase;
    context.scope().unit = static_cast<std::int16_t>(unit);
  }
  ScopeGuard(RankContext& context, Phase phase, int unit, int micro, int chunk)
      : ScopeGuard(context, phase, unit) {
    context.scope().micro = micro;
    context.scope().chunk = static_cast<std::uint8_t>(chunk);
  }
  ~ScopeGuard() {
    context_.device().leave();
    const std::int32_t step = context_.scope().step;
    context_.scope() = saved_;
    context_.scope().step = step;  // stays until the next one begins
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  RankContext& context_;
  Scope saved_;
};

}  // namespace zl
