#include "core/rank/rank_context.h"

namespace zl {

RankContext::RankContext(Device& device, Communicator& communicator, const RankOptions& options)
    : device_(device),
      groups_(communicator, options.mesh.value_or(Mesh::data_parallel(communicator.size()))),
      options_(options) {
  const DeviceProperties properties = device.properties();
  host_share_.bytes = properties.host_memory;
  for (const MemorySpace space :
       {MemorySpace::device, MemorySpace::pinned_host, MemorySpace::host}) {
    const bool on_device = space == MemorySpace::device;
    const std::int64_t budget = on_device ? options.device_memory : options.host_memory;
    auto& slot = pools_[static_cast<std::size_t>(space)];
    MemoryShare* share = on_device && !properties.memory_is_host ? nullptr : &host_share_;
    slot = std::make_unique<Pool>(device, space, ledger_, budget, share);
    if (options.record_trace) slot->observe(this);
  }
  lend_workspace(properties.workspace);
}

RankContext::~RankContext() {
  if (workspace_.view.data != nullptr) device_.lend_workspace(nullptr, 0);
}

void RankContext::lend_workspace(std::int64_t bytes) {
  if (bytes == 0) return;
  workspace_ = allocate(DType::u8, Shape{bytes}, MemoryTag::workspace, {"library workspace"});
  device_.lend_workspace(workspace_.view.data, bytes);
}

Tensor RankContext::allocate(DType dtype, const Shape& shape, MemoryTag tag, Label label,
                             MemorySpace space) {
  Tensor tensor;
  const std::int64_t bytes = shape.count() * static_cast<std::int64_t>(size_of(dtype));
  tensor.buffer = pools_[static_cast<std::size_t>(space)]->allocate(bytes, tag, label);
  tensor.view = {tensor.buffer.data(), dtype, shape};
  return tensor;
}

Tensor RankContext::allocate_pages(DType dtype, std::int64_t count, MemoryTag tag, Label label,
                                   MemorySpace space) {
  constexpr std::int64_t kPage = ObjectLayout::kPage;
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t whole = (bytes + kPage - 1) / kPage * kPage;
  Tensor tensor = allocate(DType::u8, Shape{whole + kPage - Pool::kAlignment}, tag, label, space);
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.buffer.data());
  tensor.view = {tensor.buffer.data() + (kPage - address % kPage) % kPage, dtype, Shape{count}};
  return tensor;
}

void RankContext::collective(StreamId stream, const Collective& collective) {
  ZL_CHECK(!collective.segments.empty(), "a collective has at least one tensor");
  Timing* timing = nullptr;
  if (options_.record_trace) {
    TraceEvent record = event(EventType::collective, stream);
    record.kind = static_cast<std::uint8_t>(collective.kind);
    record.purpose = static_cast<std::uint8_t>(collective.purpose);
    record.dtype = collective.segments.front().source.dtype;
    record.n = static_cast<std::int64_t>(collective.segments.size());
    record.k = ranks(collective.axis);
    record.axis = static_cast<std::uint8_t>(collective.axis);
    record.stride = mesh().stride(collective.axis);
    for (const Segment& segment : collective.segments) {
      record.m += segment.source.count();
      record.bytes_read += segment.source.bytes();
      record.bytes_written += segment.destination.bytes();
      record.wire_bytes += wire_bytes(collective.kind, segment, ranks(collective.axis));
      record.id += bytes_in_place(segment);
    }
    timing = append(record);
  }
  if (options_.record_accesses) {
    for (const Segment& segment : collective.segments) {
      record_access(segment.source, Access::read);
      record_access(segment.destination, Access::write);
    }
  }
  Collective placed = collective;
  placed.scope = scope_;
  groups_.of(collective.axis).run(stream, placed, timing);
}

// One event for each message, the last of which is timed.
void RankContext::exchange(StreamId stream, Axis axis, std::span<const Message> messages) {
  Timing* timing = nullptr;
  for (const Message& message : messages) {
    if (options_.record_trace) {
      TraceEvent record = event(EventType::message, stream);
      record.kind = message.sends ? 1 : 0;
      record.axis = static_cast<std::uint8_t>(axis);
      record.stride = mesh().stride(axis);
      record.dtype = message.tensor.dtype;
      record.m = message.tensor.count();
      record.n = message.peer;
      record.k = ranks(axis);
      record.id = &message - messages.data();
      (message.sends ? record.bytes_read : record.bytes_written) = message.tensor.bytes();
      record.wire_bytes = message.sends ? message.tensor.bytes() : 0;
      timing = append(record);
    }
    if (options_.record_accesses) {
      record_access(message.tensor, message.sends ? Access::read : Access::write);
    }
  }
  std::vector<Message> placed(messages.begin(), messages.end());
  for (Message& message : placed) message.scope = scope_;
  groups_.of(axis).exchange(stream, placed, timing);
}

void RankContext::upload(StreamId stream, const TensorView& destination, const void* source) {
  const TensorView outside{static_cast<std::byte*>(const_cast<void*>(source)), destination.dtype,
                           destination.shape};
  move(stream, Route::host_to_device, Purpose::control, destination, outside);
  if (options_.record_accesses) record_access(destination, Access::write);
}

void RankContext::download(StreamId stream, void* destination, const TensorView& source) {
  move(stream, Route::device_to_host, Purpose::control,
       {static_cast<std::byte*>(destination), source.dtype, source.shape}, source);
  if (options_.record_accesses) record_access(source, Access::read);
}

void RankContext::copy(StreamId stream, Route route, const TensorView& destination,
                       const TensorView& source, Purpose purpose) {
  ZL_CHECK(destination.dtype == source.dtype && destination.count() == source.count(),
           "a copy does not convert or cut");
  move(stream, route, purpose, destination, source);
  if (!options_.record_accesses) return;
  record_access(source, Access::read);
  record_access(destination, Access::write);
}

void RankContext::move(StreamId stream, Route route, Purpose purpose, const TensorView& destination,
                       const TensorView& source) {
  Timing* timing = nullptr;
  if (options_.record_trace) {
    TraceEvent record = event(EventType::copy, stream);
    record.kind = static_cast<std::uint8_t>(route);
    record.purpose = static_cast<std::uint8_t>(purpose);
    record.bytes_read = record.bytes_written = destination.bytes();
    timing = append(record);
  }
  device_.copy(stream, destination.data, source.data, destination.bytes(), timing);
}

StoredObject RankContext::create_object(const std::string& name, const ObjectLayout& layout,
                                        MemoryTag tag) {
  ZL_CHECK(storage_ != nullptr, "this run has no file tier");
  return {&ledger_, storage_->create(name, layout), layout, tag};
}

void RankContext::read_object(const StoredObject& object, const std::vector<TensorView>& parts) {
  transfer(object, parts, Route::file_to_host);
}

void RankContext::write_object(const StoredObject& object, const std::vector<TensorView>& parts) {
  transfer(object, parts, Route::host_to_file);
}

void RankContext::transfer(const StoredObject& object, const std::vector<TensorView>& parts,
                           Route route) {
  const bool reads = route == Route::file_to_host;
  const StreamId stream = reads ? StreamId::file_in : StreamId::file_out;
  Timing* timing = nullptr;
  if (options_.record_trace) {
    TraceEvent record = event(EventType::transfer, stream);
    record.kind = static_cast<std::uint8_t>(route);
    record.m = object.layout().requests();
    record.bytes_read = record.bytes_written = object.layout().transfer_bytes();
    timing = append(record);
  }
  std::vector<ObjectPart> memory;
  for (const TensorView& part : parts) {
    if (options_.record_accesses) record_access(part, reads ? Access::write : Access::read);
    memory.push_back({part.data, part.bytes()});
  }
  const auto work = [storage = storage_, id = object.id(), memory = std::move(memory), reads] {
    if (reads) {
      storage->read(id, memory);
    } else {
      storage->write(id, memory);
    }
  };
  device_.run_host(stream, work, timing);
}

StoredObject::StoredObject(Ledger* ledger, ObjectId id, const ObjectLayout& layout, MemoryTag tag)
    : ledger_(ledger), id_(id), layout_(layout), tag_(tag) {
  ledger_->add(MemorySpace::nvme, tag_, layout_.file_bytes());
}

StoredObject& StoredObject::operator=(StoredObject&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(id_, other.id_);
  std::swap(layout_, other.layout_);
  std::swap(tag_, other.tag_);
  return *this;
}

StoredObject::~StoredObject() {
  if (ledger_ != nullptr) ledger_->remove(MemorySpace::nvme, tag_, layout_.file_bytes());
}

EventId RankContext::record(StreamId stream) {
  const EventId id = device_.record(stream);
  if (options_.record_trace) {
    TraceEvent record = event(EventType::record, stream);
    record.id = id;
    trace_.append(record);
  }
  return id;
}

void RankContext::wait(StreamId stream, EventId id) {
  if (options_.record_trace) {
    TraceEvent record = event(EventType::wait, stream);
    record.id = id;
    trace_.append(record);
  }
  device_.wait(stream, id);
}

void RankContext::synchronize(StreamId stream) {
  if (options_.record_trace) trace_.append(event(EventType::synchronize, stream));
  device_.synchronize(stream);
}

double RankContext::read(ProbeKind what, const TensorView& scalar) {
  if (options_.record_trace) trace_.append(event(EventType::synchronize, StreamId::compute));
  return device_.read(StreamId::compute, what, scalar);
}

TraceEvent RankContext::event(EventType type, StreamId stream) const {
  TraceEvent record;
  record.type = type;
  record.stream = static_cast<std::uint8_t>(stream);
  record.scope = scope_;
  return record;
}

Timing* RankContext::append(const TraceEvent& record) {
  Timing* timing = &trace_.append(record).timing;
  return timed_ && !trace_.in_round_that_may_fold() ? timing : nullptr;
}

Timing* RankContext::record_op(StreamId stream, std::uint8_t kind, const Cost& cost, DType dtype) {
  TraceEvent record = event(EventType::op, stream);
  record.kind = kind;
  record.dtype = dtype;
  record.m = cost.m;
  record.n = cost.n;
  record.k = cost.k;
  record.purpose = static_cast<std::uint8_t>(cost.variant);
  record.flops = cost.flops;
  record.bytes_read = cost.bytes_read;
  record.bytes_written = cost.bytes_written;
  return append(record);
}

void RankContext::record_access(const TensorView& view, Access access) {
  if (view.empty() || !options_.record_trace) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(view.data);
  accesses_.push_back({static_cast<std::int64_t>(trace_.events().size()) - 1, begin,
                       begin + static_cast<std::uint64_t>(view.bytes()), access != Access::read});
}

void RankContext::on_allocate(MemorySpace space, MemoryTag tag, Label label, std::int64_t bytes,
                              const std::byte* data) {
  TraceEvent& event = record_memory(EventType::allocate, space, tag, bytes, data);
  event.what = label.what;
  if (label.unit >= 0) event.scope.unit = static_cast<std::int16_t>(label.unit);
}

void RankContext::on_free(MemorySpace space, MemoryTag tag, std::int64_t bytes,
                          const std::byte* data) {
  record_memory(EventType::free, space, tag, bytes, data);
}

TraceEvent& RankContext::record_memory(EventType type, MemorySpace space, MemoryTag tag,
                                       std::int64_t bytes, const std::byte* data) {
  TraceEvent record = event(type, StreamId::compute);
  record.kind = static_cast<std::uint8_t>(tag);
  record.space = space;
  record.bytes_written = bytes;
  record.id = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
  return trace_.append(record);
}

}  // namespace zl
