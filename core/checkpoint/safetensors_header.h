// The header of safetensors files: which tensors, of which type and shape, at which bytes.
// Ownership: values. Threads: pure functions over files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/files.h"

namespace zl {

inline constexpr const char* kSafetensorsMetadata = "__metadata__";

// The format's name of a type: "F32"; "?" of types that it lacks.
const char* safetensors_code(DType dtype);

// product(shape) * element bytes; nothing when negative or beyond 63 bits.
std::optional<std::int64_t> safetensors_bytes(std::int64_t element,
                                              const std::vector<std::int64_t>& shape);

// "[2,3]"
std::string shape_text(const std::vector<std::int64_t>& shape);

struct SafetensorsEntry {
  std::string name;
  std::string code;            // of its type
  std::optional<DType> dtype;  // none: of bytes that nothing here computes with
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes of the data
};

struct SafetensorsHeader {
  std::string text;
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::int64_t data = 0;                  // where the data begins in the file
};

// Throws Error{invalid} naming the file and the defect: truncated, bad JSON, duplicate name, a type
// of unknown size, size that does not match the shape, data that overlaps, leaves a hole or runs
// past the end.
SafetensorsHeader read_safetensors_header(const InputFile& file);

// The text of a header, padded: of these tensors, one after the other in this order (begin and end
// are set here). Throws Error{invalid} naming the path where a text is not UTF-8.
std::string safetensors_header_text(const std::string& path, std::vector<SafetensorsEntry> entries,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace zl
