#include "core/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/json_limits.h"
#include "core/base/text.h"

namespace zl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit

constexpr std::array<std::pair<DType, const char*>, 8> kDTypes{{{DType::f64, "F64"},
                                                                {DType::f32, "F32"},
                                                                {DType::bf16, "BF16"},
                                                                {DType::f16, "F16"},
                                                                {DType::i64, "I64"},
                                                                {DType::i32, "I32"},
                                                                {DType::u16, "U16"},
                                                                {DType::u8, "U8"}}};

// Types that files hold and nothing here computes with, such as the masks of old GPT-2 files.
constexpr std::array<std::pair<const char*, int>, 8> kOtherTypes{{{"BOOL", 1},
                                                                  {"I8", 1},
                                                                  {"F8_E4M3", 1},
                                                                  {"F8_E5M2", 1},
                                                                  {"F8_E8M0", 1},
                                                                  {"I16", 2},
                                                                  {"U32", 4},
                                                                  {"U64", 8}}};

[[noreturn]] void fail(const std::string& path, const std::string& defect) {
  throw Error(ErrorCode::invalid, path + ": " + defect);
}

std::optional<DType> dtype_of_code(std::string_view code) {
  for (const auto& [type, name] : kDTypes) {
    if (code == name) return type;
  }
  return std::nullopt;
}

// Bytes of an element; 0: not known.
std::int64_t element_size(const SafetensorsEntry& entry) {
  if (entry.dtype) return static_cast<std::int64_t>(size_of(*entry.dtype));
  for (const auto& [name, bytes] : kOtherTypes) {
    if (entry.code == name) return bytes;
  }
  return 0;
}

// nlohmann keeps the last of duplicate keys; a safetensors reader must refuse them.
Json parse_header(const std::string& path, const std::string& text) {
  std::set<std::string> names;
  std::string duplicate;
  const auto watch_names = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      duplicate = parsed.get<std::string>();
    }
    return true;
  };
  Json header;
  try {
    require_shallow_json(text, path + ": the header");
    header = Json::parse(text, watch_names);
  } catch (const nlohmann::json::exception& error) {
    fail(path, "the header is not valid JSON: " + json_problem(error.what()));
  }
  if (!header.is_object()) fail(path, "the header is not a JSON object");
  if (!duplicate.empty()) fail(path, "tensor \"" + shortened(duplicate) + "\" appears twice");
  return header;
}

std::map<std::string, std::string> parse_metadata(const std::string& path, const Json& value) {
  try {
    return value.get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail(path, "__metadata__ is not an object of strings");
  }
}

// Non-negative integers that fit 63 bits.
std::vector<std::int64_t> parse_counts(const std::string& where, const Json& owner,
                                       const char* key) {
  const auto found = owner.find(key);
  bool good = found != owner.end() && found->is_array();
  std::vector<std::int64_t> counts;
  if (good) {
    for (const auto& item : *found) {
      good = good && item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX;
      if (good) counts.push_back(item.get<std::int64_t>());
    }
  }
  if (!good) fail(where, std::string(key) + " is not an array of non-negative integers");
  return counts;
}

SafetensorsEntry parse_entry(const std::string& path, const std::string& name, const Json& value) {
  const std::string where = path + ": tensor \"" + shortened(name) + "\"";
  if (!value.is_object()) fail(where, "its entry is not an object");
  const auto code = value.find("dtype");
  if (code == value.end() || !code->is_string()) fail(where, "it has no dtype");
  SafetensorsEntry entry{name, code->get<std::string>(), {}, parse_counts(where, value, "shape")};
  entry.dtype = dtype_of_code(entry.code);
  const std::int64_t element = element_size(entry);
  if (element == 0) {
    fail(where, "dtype " + shortened(entry.code) +
                    " is not one of F64, F32, BF16, F16, I64, I32, U16, U8");
  }
  const auto offsets = parse_counts(where, value, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    fail(where, "data_offsets is not [begin, end]");
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (safetensors_bytes(element, entry.shape) != entry.end - entry.begin) {
    fail(where, "shape " + shortened(shape_text(entry.shape)) + " of " + entry.code +
                    " does not take the " + std::to_string(entry.end - entry.begin) +
                    " bytes of its data_offsets");
  }
  return entry;
}

// The format wants the data covered exactly: no overlap, no hole, nothing behind the last tensor.
void check_coverage(const std::string& path, const std::vector<SafetensorsEntry>& sorted,
                    std::int64_t data_size) {
  std::int64_t expected = 0;
  for (const SafetensorsEntry& entry : sorted) {
    const std::string where = path + ": tensor \"" + shortened(entry.name) + "\"";
    if (entry.end > data_size) {
      fail(where, "its data ends at byte " + std::to_string(entry.end) + " of " +
                      std::to_string(data_size) + "; the file is truncated");
    }
    if (entry.begin < expected) fail(where, "its data overlaps the tensor before it");
    if (entry.begin > expected) fail(where, "there is a hole in the data before it");
    expected = entry.end;
  }
  if (expected != data_size) {
    fail(path, std::to_string(data_size - expected) + " bytes follow the last tensor");
  }
}

std::string read_text(const InputFile& file) {
  const auto size = static_cast<std::uint64_t>(file.size());
  std::uint64_t length = 0;
  if (size < sizeof length) {
    fail(file.path(), "truncated: " + std::to_string(size) + " bytes hold no header length");
  }
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeader) {
    fail(file.path(), "header length " + std::to_string(length) +
                          " is beyond 100 MB; this is not a safetensors file");
  }
  if (length > size - sizeof length) {
    fail(file.path(), "truncated: the header takes " + std::to_string(length) +
                          " bytes, the file has " + std::to_string(size - sizeof length));
  }
  std::string text(length, '\0');
  file.read(sizeof length, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

const char* safetensors_code(DType dtype) {
  for (const auto& [type, code] : kDTypes) {
    if (type == dtype) return code;
  }
  return "?";
}

std::optional<std::int64_t> safetensors_bytes(std::int64_t element,
                                              const std::vector<std::int64_t>& shape) {
  std::int64_t count = element;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return count;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return nlohmann::json(shape).dump();
}

std::string safetensors_header_text(const std::string& path, std::vector<SafetensorsEntry> entries,
                                    const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kSafetensorsMetadata] = metadata;
  std::int64_t offset = 0;
  for (SafetensorsEntry& entry : entries) {
    entry.begin = offset;
    offset += safetensors_bytes(element_size(entry), entry.shape).value_or(0);
    entry.end = offset;
    Json& object = header[entry.name];
    object["dtype"] = entry.code;
    object["shape"] = entry.shape;
    object["data_offsets"] = {entry.begin, entry.end};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail(path, "a tensor name or metadata value is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

SafetensorsHeader read_safetensors_header(const InputFile& file) {
  SafetensorsHeader header;
  header.text = read_text(file);
  const Json object = parse_header(file.path(), header.text);
  for (const auto& [name, value] : object.items()) {
    if (name == kSafetensorsMetadata) {
      header.metadata = parse_metadata(file.path(), value);
    } else {
      header.entries.push_back(parse_entry(file.path(), name, value));
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& left, const SafetensorsEntry& right) {
                     return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
                   });
  header.data = static_cast<std::int64_t>(sizeof(std::uint64_t) + header.text.size());
  check_coverage(file.path(), header.entries, file.size() - header.data);
  return header;
}

}  // namespace zl
