// GGUF files, version 2 and 3 (ggml-org/ggml, docs/gguf.md): metadata and tensors of llama.cpp.
// Ownership: a GgufFile owns its open file and its metadata; tensors are read as they are asked
// for. Threads: read() may run on many at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/checkpoint/gguf_reader.h"
#include "core/checkpoint/gguf_types.h"

namespace zl {

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // row-major, the longest stride first: [rows, columns]
  std::uint32_t type = 0;           // GgufType, or one that zerolab does not read
  std::int64_t offset = 0;          // of its bytes in the file
  std::int64_t elements = 0;
};

class GgufFile {
 public:
  // Reads metadata and the list of tensors, no data. Every count is compared with what is left of
  // the file before memory is taken. Throws Error{invalid} naming the file and the defect: missing,
  // another format, big-endian, truncated, a name given twice, a tensor outside of the file.
  explicit GgufFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(const std::string& name) const;  // nullptr: none

  // Of a key: nothing where it is absent. Throws Error{invalid} where it is of another kind.
  std::optional<std::string> text(const std::string& key) const;
  std::optional<std::int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  const GgufList* list(const std::string& key) const;

  // Elements [begin, begin + out.size()) of a tensor as fp32, both multiples of its block. Throws
  // Error{invalid} naming the tensor and its type when zerolab does not read it, and when the file
  // has been cut short.
  void read(const GgufTensor& tensor, std::int64_t begin, std::span<float> out) const;

  // Throws Error{invalid} "FILE: defect".
  [[noreturn]] void refuse(const std::string& defect) const;

 private:
  void read_metadata(GgufReader& reader, std::uint64_t count);
  void read_tensors(GgufReader& reader, std::uint64_t count);
  void place_tensors(std::int64_t header_end);

  InputFile file_;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, std::size_t> by_name_;
};

}  // namespace zl
