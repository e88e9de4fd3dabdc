// Weight shards in files (ZeRO-Infinity): read into a few host buffers on their way to the device,
// written when the host has updated them.
// Ownership: owns objects and buffers. Threads: one rank's thread.
#pragma once

#include <string>
#include <vector>

#include "core/offload/offload_config.h"
#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"

namespace zl {

class WeightFiles {
 public:
  // parameters: those that live in files. Error{invalid} when a chunk is larger than
  // offload.parameter_buffer_size.
  WeightFiles(RankContext& context, const OffloadConfig& offload, DType dtype,
              const Partition& partition, const std::vector<int>& parameters);

  // A buffer for the parameter's first value, filled by the compute stream; then keep() it.
  TensorView first_value(int parameter);
  void keep(int parameter);
  // This rank's chunk to `destination` on the device, on the copy stream.
  void fetch(int parameter, const TensorView& destination);
  // This rank's chunk, by way of a buffer.
  void archive(StateArchive& archive, int parameter, const std::string& name);
  // A new value in host memory that starts on a page, ready on the host stream.
  void write(int parameter, const TensorView& value);

 private:
  struct File {
    StoredObject object;
    EventId written = -1;
  };
  struct Buffer {
    Tensor storage;
    EventId free = -1;
  };

  Buffer& next_buffer() { return buffers_[next_++ % buffers_.size()]; }
  // Reads the parameter's chunk into the buffer, on the stream of the files.
  void read(int parameter, Buffer& buffer);
  TensorView part(const Buffer& buffer, int parameter) const;
  File& file(int parameter) { return files_[parameter]; }

  RankContext& context_;
  const Partition& partition_;
  std::vector<File> files_;  // by parameter
  std::vector<Buffer> buffers_;
  std::size_t next_ = 0;
};

}  // namespace zl
