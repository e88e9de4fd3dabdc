// Safetensors files: named tensors as raw little-endian bytes behind a JSON header.
// Ownership: NamedTensor only views its bytes; SafetensorsFile owns what its tensors view.
// Threads: pure functions over files; a SafetensorsFile may be read from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/checkpoint/file_checksum.h"

namespace zl {

struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;   // empty: a scalar
  std::span<const std::byte> bytes;  // row-major, product(shape) * size_of(dtype) bytes
};

// Move-only: a copy's tensors would view the original.
struct SafetensorsFile {
  SafetensorsFile() = default;
  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  std::string path;
  std::map<std::string, std::string> metadata;
  std::vector<NamedTensor> tensors;  // in file order
  std::vector<std::byte> data;
  std::optional<WrittenFile> written;  // none: it has no checksum, as those of other programs

  // Throws Error{invalid} naming the file and the tensor when there is none of that name.
  const NamedTensor& at(const std::string& name) const;
};

// Format (huggingface/safetensors): u64 header length, JSON header padded with spaces to 8 bytes,
// data; the metadata has a checksum of the whole file. Tensors with wider elements are laid first,
// so that every tensor is aligned to its element size; among equals the given order is kept. The
// same input gives the same bytes. Atomic: the file appears whole or not at all. Throws
// Error{invalid} on a duplicate or reserved name, text that is not UTF-8, or bytes that do not
// match the shape; Error{failed} when the disk refuses.
WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

// Reads a whole file. Throws Error{invalid} naming the file and the defect: missing, no regular
// file, truncated, bad JSON, duplicate name, unknown dtype, size that does not match the shape,
// data that overlaps, leaves a hole or runs past the end, or bytes that do not have the checksum
// that they were written with (which the metadata returned does not show).
SafetensorsFile read_safetensors(const std::string& path);

}  // namespace zl
