#include "core/offload/weight_files.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/offload/placement.h"

namespace zl {

WeightFiles::WeightFiles(RankContext& context, const OffloadConfig& offload, DType dtype,
                         const Partition& partition, const std::vector<int>& parameters)
    : context_(context), partition_(partition), files_(partition.size()) {
  std::int64_t largest = 0;
  for (const int p : parameters) {
    const std::int64_t chunk = partition.slot(p).chunk;
    largest = std::max(largest, chunk);
    const auto bytes = chunk * static_cast<std::int64_t>(size_of(dtype));
    file(p).object = context.create_object("weights-" + std::to_string(p),
                                           {{bytes}, offload.aio.block_size}, MemoryTag::parameter);
  }
  if (largest > offload.parameter_buffer_size) {
    throw Error(ErrorCode::invalid, "zero_optimization.offload_param.buffer_size: " +
                                        std::to_string(offload.parameter_buffer_size) +
                                        " elements do not hold the largest shard; use at least " +
                                        std::to_string(largest));
  }
  buffers_.resize(offload.parameter_buffer_count);
  for (Buffer& buffer : buffers_) {
    buffer.storage = context.allocate_pages(dtype, largest, MemoryTag::staging,
                                            {"weight swap buffer"}, host_space(offload));
  }
}

TensorView WeightFiles::part(const Buffer& buffer, int parameter) const {
  return buffer.storage.view.flat(0, partition_.slot(parameter).chunk);
}

TensorView WeightFiles::first_value(int parameter) {
  const Buffer& buffer = buffers_[next_ % buffers_.size()];
  if (buffer.free >= 0) context_.wait(StreamId::compute, buffer.free);
  return part(buffer, parameter);
}

void WeightFiles::keep(int parameter) {
  Buffer& buffer = next_buffer();
  context_.wait(StreamId::file_out, context_.record(StreamId::compute));
  context_.write_object(file(parameter).object, {part(buffer, parameter)});
  file(parameter).written = buffer.free = context_.record(StreamId::file_out);
}

void WeightFiles::read(int parameter, Buffer& buffer) {
  if (buffer.free >= 0) context_.wait(StreamId::file_in, buffer.free);
  context_.wait(StreamId::file_in, file(parameter).written);
  context_.read_object(file(parameter).object, {part(buffer, parameter)});
}

void WeightFiles::archive(StateArchive& archive, int parameter, const std::string& name) {
  if (archive.restores()) {
    const TensorView value = first_value(parameter);
    context_.synchronize(StreamId::compute);
    archive.tensor(name, value, StateArchive::Place::host);
    return keep(parameter);
  }
  Buffer& buffer = next_buffer();
  read(parameter, buffer);
  context_.synchronize(StreamId::file_in);
  archive.tensor(name, part(buffer, parameter), StateArchive::Place::host);
  buffer.free = -1;
}

void WeightFiles::fetch(int parameter, const TensorView& destination) {
  Buffer& buffer = next_buffer();
  read(parameter, buffer);
  context_.wait(StreamId::copy_in, context_.record(StreamId::file_in));
  context_.copy(StreamId::copy_in, Route::host_to_device, destination, part(buffer, parameter));
  buffer.free = context_.record(StreamId::copy_in);
}

void WeightFiles::write(int parameter, const TensorView& value) {
  context_.wait(StreamId::file_out, context_.record(StreamId::host));
  context_.write_object(file(parameter).object, {value});
  file(parameter).written = context_.record(StreamId::file_out);
}

}  // namespace zl
