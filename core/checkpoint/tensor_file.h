// Safetensors files too large for memory: read and written a piece of a tensor at a time.
// Ownership: both own their open file. Threads: a TensorFile may be read by many; one writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/checkpoint/safetensors_header.h"

namespace zl {

// Bytes are read when asked for, into memory of the caller: a file that is cut short meanwhile is
// an error, where a mapping would end the process.
class TensorFile {
 public:
  // Throws as read_safetensors_header.
  explicit TensorFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }
  // Null where it has none of that name.
  const SafetensorsEntry* find(const std::string& name) const;
  // Elements [begin, begin + out.size()), row by row, of a tensor of F32, F16 or BF16; other types
  // are Error{invalid} naming file and tensor.
  void read(const SafetensorsEntry& entry, std::int64_t begin, std::span<float> out) const;
  // Bytes of the file itself from `offset` on; no more than there are.
  std::vector<std::byte> bytes(std::int64_t offset, std::int64_t count) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
  std::map<std::string, std::size_t> by_name_;
};

// Takes the elements of its tensors in the order in which it was told of them.
class TensorFileWriter {
 public:
  struct Tensor {
    std::string name;
    DType dtype = DType::f32;  // f32, f16 or bf16
    std::vector<std::int64_t> shape;
  };

  TensorFileWriter(const std::string& path, const std::vector<Tensor>& tensors,
                   const std::map<std::string, std::string>& metadata);
  // The elements that follow: rounded to the type of their tensor.
  void append(std::span<const float> values);
  // All elements are there: the file appears.
  void commit();

 private:
  void write(DType dtype, std::span<const float> values);

  AtomicFile file_;
  struct Part {
    DType dtype;
    std::int64_t left;  // elements to come
  };
  std::vector<Part> parts_;
  std::size_t next_ = 0;
};

}  // namespace zl
