#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/checkpoint/safetensors_header.h"

namespace zl {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

[[noreturn]] void invalid(const std::string& path, const std::string& defect) {
  throw Error(ErrorCode::invalid, path + ": " + defect);
}

void check_for_writing(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == kSafetensorsMetadata)
      invalid(path, "a tensor may not be named __metadata__");
    if (!names.insert(tensor.name).second) {
      invalid(path, "tensor \"" + tensor.name + "\" is given twice");
    }
    const auto expected =
        safetensors_bytes(static_cast<std::int64_t>(size_of(tensor.dtype)), tensor.shape);
    if (expected != static_cast<std::int64_t>(tensor.bytes.size())) {
      invalid(path, "tensor \"" + tensor.name + "\" of shape " + shape_text(tensor.shape) + " " +
                        safetensors_code(tensor.dtype) + " has " +
                        std::to_string(tensor.bytes.size()) + " bytes");
    }
  }
}

std::string header_of(const std::string& path, const std::vector<const NamedTensor*>& tensors,
                      std::map<std::string, std::string> metadata) {
  metadata[kChecksumName] = kNoDigits;
  std::vector<SafetensorsEntry> entries;
  for (const NamedTensor* tensor : tensors) {
    entries.push_back(
        {tensor->name, safetensors_code(tensor->dtype), tensor->dtype, tensor->shape});
  }
  return safetensors_header_text(path, std::move(entries), metadata);
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
  SafetensorsHeader header = read_safetensors_header(input);
  SafetensorsFile file;
  file.path = path;
  file.metadata = std::move(header.metadata);
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.dtype) continue;
    invalid(path + ": tensor \"" + shortened(entry.name) + "\"",
            "dtype " + entry.code + " is not one of F64, F32, BF16, F16, I64, I32, U16, U8");
  }
  file.data.resize(static_cast<std::size_t>(input.size() - header.data));
  input.read(header.data, file.data);
  check_bytes(file, header.text);
  for (SafetensorsEntry& entry : header.entries) {
    file.tensors.push_back({std::move(entry.name), *entry.dtype, std::move(entry.shape),
                            std::span(file.data).subspan(entry.begin, entry.end - entry.begin)});
  }
  return file;
}

}  // namespace zl
