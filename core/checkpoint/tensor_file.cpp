#include "core/checkpoint/tensor_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

template <class T>
void read_as(const InputFile& file, std::int64_t offset, std::span<float> out) {
  std::vector<T> stored(out.size());
  file.read(offset, std::as_writable_bytes(std::span(stored)));
  std::transform(stored.begin(), stored.end(), out.begin(),
                 [](T value) { return to_float(value); });
}

template <class T>
void write_as(AtomicFile& file, std::span<const float> values) {
  std::vector<T> stored(values.size());
  std::transform(values.begin(), values.end(), stored.begin(),
                 [](float value) { return from_float<T>(value); });
  file.write(std::as_bytes(std::span(stored)));
}

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return safetensors_bytes(1, shape).value_or(0);
}

}  // namespace

TensorFile::TensorFile(const std::string& path)
    : file_(path), header_(read_safetensors_header(file_)) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) by_name_[header_.entries[i].name] = i;
}

const SafetensorsEntry* TensorFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.entries[found->second];
}

void TensorFile::read(const SafetensorsEntry& entry, std::int64_t begin,
                      std::span<float> out) const {
  const DType dtype = entry.dtype.value_or(DType::u8);
  const std::int64_t offset =
      header_.data + entry.begin + begin * static_cast<std::int64_t>(size_of(dtype));
  switch (dtype) {
    case DType::f32:
      return file_.read(offset, std::as_writable_bytes(out));
    case DType::bf16:
      return read_as<bfloat16>(file_, offset, out);
    case DType::f16:
      return read_as<float16>(file_, offset, out);
    default:
      throw Error(ErrorCode::invalid, path() + ": tensor \"" + shortened(entry.name) + "\" is of " +
                                          shortened(entry.code) +
                                          "; weights are F32, F16 or BF16: convert them");
  }
}

std::vector<std::byte> TensorFile::bytes(std::int64_t offset, std::int64_t count) const {
  const std::int64_t there = std::clamp<std::int64_t>(file_.size() - offset, 0, count);
  std::vector<std::byte> bytes(static_cast<std::size_t>(there));
  file_.read(offset, bytes);
  return bytes;
}

TensorFileWriter::TensorFileWriter(const std::string& path, const std::vector<Tensor>& tensors,
                                   const std::map<std::string, std::string>& metadata)
    : file_(path) {
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> names;
  for (const Tensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw Error(ErrorCode::invalid,
                  path + ": tensor \"" + shortened(tensor.name) + "\" is given twice");
    }
    entries.push_back({tensor.name, safetensors_code(tensor.dtype), tensor.dtype, tensor.shape});
    parts_.push_back({tensor.dtype, elements(tensor.shape)});
  }
  const std::string header = safetensors_header_text(path, std::move(entries), metadata);
  const std::uint64_t length = header.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(header);
}

void TensorFileWriter::append(std::span<const float> values) {
  while (!values.empty()) {
    while (next_ < parts_.size() && parts_[next_].left == 0) ++next_;
    ZL_CHECK(next_ < parts_.size(), "a file takes the elements of its tensors");
    Part& part = parts_[next_];
    const auto count = std::min(static_cast<std::size_t>(part.left), values.size());
    write(part.dtype, values.first(count));
    part.left -= static_cast<std::int64_t>(count);
    values = values.subspan(count);
  }
}

void TensorFileWriter::write(DType dtype, std::span<const float> values) {
  switch (dtype) {
    case DType::f32:
      return file_.write(std::as_bytes(values));
    case DType::bf16:
      return write_as<bfloat16>(file_, values);
    case DType::f16:
      return write_as<float16>(file_, values);
    default:
      throw Error(ErrorCode::invalid, std::string("weights are not written as ") + name_of(dtype));
  }
}

void TensorFileWriter::commit() {
  ZL_CHECK(std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.left == 0; }),
           "all elements of a file are written");
  file_.commit();
}

}  // namespace zl
