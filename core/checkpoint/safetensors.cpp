#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_limits.h"
#include "core/base/text.h"

namespace zl {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadata = "__metadata__";

constexpr std::array<std::pair<DType, const char*>, 8> kDTypes{{{DType::f64, "F64"},
                                                                {DType::f32, "F32"},
                                                                {DType::bf16, "BF16"},
                                                                {DType::f16, "F16"},
                                                                {DType::i64, "I64"},
                                                                {DType::i32, "I32"},
                                                                {DType::u16, "U16"},
                                                                {DType::u8, "U8"}}};

[[noreturn]] void invalid(const std::string& path, const std::string& defect) {
  throw Error(ErrorCode::invalid, path + ": " + defect);
}

const char* code_of(DType dtype) {
  for (const auto& [type, code] : kDTypes) {
    if (type == dtype) return code;
  }
  return "?";
}

std::optional<DType> dtype_of_code(std::string_view code) {
  for (const auto& [type, name] : kDTypes) {
    if (code == name) return type;
  }
  return std::nullopt;
}

// product(shape) * size_of(dtype); nothing when negative or beyond 63 bits.
std::optional<std::int64_t> byte_count(DType dtype, const std::vector<std::int64_t>& shape) {
  auto count = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return count;
}

std::string text_of(const std::vector<std::int64_t>& shape) { return nlohmann::json(shape).dump(); }

// ---- writing ----

void check_for_writing(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == kMetadata) invalid(path, "a tensor may not be named __metadata__");
    if (!names.insert(tensor.name).second) {
      invalid(path, "tensor \"" + tensor.name + "\" is given twice");
    }
    const auto expected = byte_count(tensor.dtype, tensor.shape);
    if (expected != static_cast<std::int64_t>(tensor.bytes.size())) {
      invalid(path, "tensor \"" + tensor.name + "\" of shape " + text_of(tensor.shape) + " " +
                        code_of(tensor.dtype) + " has " + std::to_string(tensor.bytes.size()) +
                        " bytes");
    }
  }
}

std::string header_of(const std::string& path, const std::vector<const NamedTensor*>& tensors,
                      std::map<std::string, std::string> metadata) {
  metadata[kChecksumName] = kNoDigits;
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[kMetadata] = metadata;
  std::size_t offset = 0;
  for (const NamedTensor* tensor : tensors) {
    const std::size_t end = offset + tensor->bytes.size();
    nlohmann::ordered_json& entry = header[tensor->name];
    entry["dtype"] = code_of(tensor->dtype);
    entry["shape"] = tensor->shape;
    entry["data_offsets"] = {offset, end};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    invalid(path, "a tensor name or metadata value is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

// ---- reading ----

// nlohmann keeps the last of duplicate keys; a safetensors reader must refuse them.
nlohmann::ordered_json parse_header(const std::string& path, const std::string& text) {
  std::set<std::string> names;
  std::string duplicate;
  const auto watch_names = [&](int depth, nlohmann::ordered_json::parse_event_t event,
                               nlohmann::ordered_json& parsed) {
    if (event == nlohmann::ordered_json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      duplicate = parsed.get<std::string>();
    }
    return true;
  };
  nlohmann::ordered_json header;
  try {
    require_shallow_json(text, path + ": the header");
    header = nlohmann::ordered_json::parse(text, watch_names);
  } catch (const nlohmann::json::exception& error) {
    invalid(path, "the header is not valid JSON: " + json_problem(error.what()));
  }
  if (!header.is_object()) invalid(path, "the header is not a JSON object");
  if (!duplicate.empty()) invalid(path, "tensor \"" + shortened(duplicate) + "\" appears twice");
  return header;
}

std::map<std::string, std::string> parse_metadata(const std::string& path,
                                                  const nlohmann::ordered_json& value) {
  try {
    return value.get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    invalid(path, "__metadata__ is not an object of strings");
  }
}

// Takes the checksum out of the metadata; files of other programs have none.
void check_bytes(SafetensorsFile& file, const std::string& header) {
  const auto stored = file.metadata.extract(kChecksumName);
  if (stored.empty()) return;
  const std::span<const std::byte> data(file.data);
  file.written = file_of(with_digits(header, kNoDigits), {&data, 1});
  if (stored.mapped() == checksum_digits(file.written->checksum)) return;
  invalid(file.path, "it is not what was written (the checksum differs); restore the file");
}

struct Entry {
  NamedTensor tensor;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Non-negative integers that fit 63 bits.
std::vector<std::int64_t> parse_counts(const std::string& where,
                                       const nlohmann::ordered_json& owner, const char* key) {
  const auto found = owner.find(key);
  bool good = found != owner.end() && found->is_array();
  std::vector<std::int64_t> counts;
  if (good) {
    for (const auto& item : *found) {
      good = good && item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX;
      if (good) counts.push_back(item.get<std::int64_t>());
    }
  }
  if (!good) invalid(where, std::string(key) + " is not an array of non-negative integers");
  return counts;
}

Entry parse_entry(const std::string& path, const std::string& name,
                  const nlohmann::ordered_json& value) {
  const std::string where = path + ": tensor \"" + shortened(name) + "\"";
  if (!value.is_object()) invalid(where, "its entry is not an object");
  const auto code = value.find("dtype");
  if (code == value.end() || !code->is_string()) invalid(where, "it has no dtype");
  const auto dtype = dtype_of_code(code->get<std::string>());
  if (!dtype) {
    invalid(where, "dtype " + shortened(code->get<std::string>()) +
                       " is not one of F64, F32, BF16, F16, I64, I32, U16, U8");
  }
  Entry entry{{name, *dtype, parse_counts(where, value, "shape"), {}}};
  const auto offsets = parse_counts(where, value, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    invalid(where, "data_offsets is not [begin, end]");
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (byte_count(*dtype, entry.tensor.shape) != entry.end - entry.begin) {
    invalid(where, "shape " + shortened(text_of(entry.tensor.shape)) + " of " + code_of(*dtype) +
                       " does not take the " + std::to_string(entry.end - entry.begin) +
                       " bytes of its data_offsets");
  }
  return entry;
}

// The format wants the data covered exactly: no overlap, no hole, nothing behind the last tensor.
void check_coverage(const std::string& path, const std::vector<Entry>& sorted,
                    std::int64_t data_size) {
  std::int64_t expected = 0;
  for (const Entry& entry : sorted) {
    const std::string where = path + ": tensor \"" + shortened(entry.tensor.name) + "\"";
    if (entry.end > data_size) {
      invalid(where, "its data ends at byte " + std::to_string(entry.end) + " of " +
                         std::to_string(data_size) + "; the file is truncated");
    }
    if (entry.begin < expected) invalid(where, "its data overlaps the tensor before it");
    if (entry.begin > expected) invalid(where, "there is a hole in the data before it");
    expected = entry.end;
  }
  if (expected != data_size) {
    invalid(path, std::to_string(data_size - expected) + " bytes follow the last tensor");
  }
}

std::string read_header(const InputFile& file) {
  const auto size = static_cast<std::uint64_t>(file.size());
  std::uint64_t length = 0;
  if (size < sizeof length) {
    invalid(file.path(), "truncated: " + std::to_string(size) + " bytes hold no header length");
  }
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeader) {
    invalid(file.path(), "header length " + std::to_string(length) +
                             " is beyond 100 MB; this is not a safetensors file");
  }
  if (length > size - sizeof length) {
    invalid(file.path(), "truncated: the header takes " + std::to_string(length) +
                             " bytes, the file has " + std::to_string(size - sizeof length));
  }
  std::string header(length, '\0');
  file.read(sizeof length, std::as_writable_bytes(std::span(header)));
  return header;
}

}  // namespace

const NamedTensor& SafetensorsFile::at(const std::string& name) const {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  invalid(path, "it has no tensor \"" + name + "\" among its " + std::to_string(tensors.size()));
}

WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  check_for_writing(path, tensors);
  std::vector<const NamedTensor*> ordered;
  for (const NamedTensor& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* left, const auto* right) {
    return size_of(left->dtype) > size_of(right->dtype);
  });
  std::vector<std::span<const std::byte>> data;
  for (const NamedTensor* tensor : ordered) data.push_back(tensor->bytes);
  std::string header = header_of(path, ordered, metadata);
  const std::uint64_t length = header.size();
  const WrittenFile written = file_of(header, data);
  header = with_digits(std::move(header), checksum_digits(written.checksum));

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const auto& bytes : data) file.write(bytes);
  file.commit();
  return written;
}

SafetensorsFile read_safetensors(const std::string& path) {
  const InputFile input(path);
  const std::string header_text = read_header(input);
  const nlohmann::ordered_json header = parse_header(path, header_text);

  SafetensorsFile file;
  file.path = path;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      file.metadata = parse_metadata(path, value);
    } else {
      entries.push_back(parse_entry(path, name, value));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& left, const Entry& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  const auto data_begin = static_cast<std::int64_t>(sizeof(std::uint64_t) + header_text.size());
  check_coverage(path, entries, input.size() - data_begin);

  file.data.resize(static_cast<std::size_t>(input.size() - data_begin));
  input.read(data_begin, file.data);
  check_bytes(file, header_text);
  for (Entry& entry : entries) {
    entry.tensor.bytes = std::span(file.data).subspan(entry.begin, entry.end - entry.begin);
    file.tensors.push_back(std::move(entry.tensor));
  }
  return file;
}

}  // namespace zl
