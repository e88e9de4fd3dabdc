#include "core/checkpoint/gguf.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kMostDims = 4;
constexpr std::int64_t kUsualAlignment = 32;

}  // namespace

void GgufFile::refuse(const std::string& defect) const {
  throw Error(ErrorCode::invalid, path() + ": " + defect);
}

GgufFile::GgufFile(const std::string& path) : file_(path) {
  GgufReader reader(file_);
  if (reader.left() < 24 || reader.take<std::uint32_t>("the magic number") != kMagic) {
    refuse("this is no GGUF file, which begins with \"GGUF\"");
  }
  const auto version = reader.take<std::uint32_t>("the version");
  if ((version & 0xffffu) == 0) refuse("a big-endian GGUF file; convert it to little-endian");
  if (version != 2 && version != 3) {
    refuse("GGUF version " + std::to_string(version) + "; 2 and 3 are read, so convert it again");
  }
  const auto tensors = reader.take<std::uint64_t>("the number of tensors");
  const auto values = reader.take<std::uint64_t>("the number of keys");
  read_metadata(reader, values);
  read_tensors(reader, tensors);
  place_tensors(reader.position());
}

void GgufFile::read_metadata(GgufReader& reader, std::uint64_t count) {
  reader.require(count, 13, "the metadata");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = reader.take_text("key " + std::to_string(i));
    const std::string what = "key \"" + shortened(key) + "\"";
    const auto type = reader.take<std::uint32_t>(what);
    GgufValue value = reader.take_value(type, what);
    if (!metadata_.emplace(key, std::move(value)).second) refuse(what + " is given twice");
  }
}

void GgufFile::read_tensors(GgufReader& reader, std::uint64_t count) {
  reader.require(count, 24, "the list of tensors");
  for (std::uint64_t i = 0; i < count; ++i) {
    GgufTensor tensor;
    tensor.name = reader.take_text("tensor " + std::to_string(i));
    const std::string what = "tensor \"" + shortened(tensor.name) + "\"";
    const auto dims = reader.take<std::uint32_t>(what);
    if (dims > kMostDims) refuse(what + " has " + std::to_string(dims) + " dimensions, beyond 4");
    tensor.elements = 1;
    for (std::uint32_t d = 0; d < dims; ++d) {
      const auto size = reader.take<std::uint64_t>(what);
      const bool fits = size <= INT64_MAX &&
                        !__builtin_mul_overflow(tensor.elements, static_cast<std::int64_t>(size),
                                                &tensor.elements);
      if (!fits) refuse(what + " has more elements than 63 bits count");
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
    }
    tensor.type = reader.take<std::uint32_t>(what);
    const auto offset = reader.take<std::uint64_t>(what);
    if (offset > static_cast<std::uint64_t>(file_.size())) refuse(what + " lies behind the file");
    tensor.offset = static_cast<std::int64_t>(offset);
    if (!by_name_.emplace(tensor.name, tensors_.size()).second) refuse(what + " is given twice");
    tensors_.push_back(std::move(tensor));
  }
}

void GgufFile::place_tensors(std::int64_t header_end) {
  const std::int64_t alignment = integer("general.alignment").value_or(kUsualAlignment);
  if (alignment < 1 || alignment > (1 << 20)) {
    refuse("general.alignment is " + std::to_string(alignment) + ", not 1 to 1048576");
  }
  const std::int64_t data = (header_end + alignment - 1) / alignment * alignment;
  for (GgufTensor& tensor : tensors_) {
    const std::string what = "tensor \"" + shortened(tensor.name) + "\"";
    if (tensor.offset % alignment != 0) refuse(what + " does not lie at the alignment");
    tensor.offset += data;
    const GgufBlock block = gguf_block(tensor.type);
    if (block.bytes == 0) continue;  // an error once it is asked for
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (columns % block.elements != 0) {
      refuse(what + " has rows of " + std::to_string(columns) + ", no multiple of " +
             std::to_string(block.elements) + " as " + gguf_type_name(tensor.type) + " needs");
    }
    const std::int64_t blocks = tensor.elements / block.elements;
    if (tensor.offset > file_.size() || blocks > (file_.size() - tensor.offset) / block.bytes) {
      refuse(what + " runs past the end; the file is truncated");
    }
  }
}

const GgufTensor* GgufFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::optional<std::string> GgufFile::text(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  refuse("key \"" + key + "\" is no text");
}

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return std::nullopt;
  if (const auto* value = std::get_if<std::int64_t>(&found->second)) return *value;
  const auto* value = std::get_if<std::uint64_t>(&found->second);
  if (value != nullptr && *value <= INT64_MAX) return static_cast<std::int64_t>(*value);
  refuse("key \"" + key + "\" is no integer of 63 bits");
}

std::optional<double> GgufFile::number(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  return static_cast<double>(*integer(key));
}

std::optional<bool> GgufFile::flag(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&found->second)) return *value;
  refuse("key \"" + key + "\" is neither true nor false");
}

const GgufList* GgufFile::list(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return nullptr;
  if (const auto* value = std::get_if<GgufList>(&found->second)) return value;
  refuse("key \"" + key + "\" is no list");
}

void GgufFile::read(const GgufTensor& tensor, std::int64_t begin, std::span<float> out) const {
  const GgufBlock block = gguf_block(tensor.type);
  const std::string what = "tensor \"" + shortened(tensor.name) + "\"";
  if (block.bytes == 0) {
    refuse(what + " is of " + gguf_type_name(tensor.type) +
           "; F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K are read, so "
           "convert it with llama-quantize");
  }
  const auto count = static_cast<std::int64_t>(out.size());
  ZL_CHECK(begin % block.elements == 0 && count % block.elements == 0 && begin >= 0 &&
               count <= tensor.elements - begin,
           "a range that is not made of blocks of the tensor");
  std::vector<std::byte> bytes(static_cast<std::size_t>(count / block.elements * block.bytes));
  file_.read(tensor.offset + begin / block.elements * block.bytes, bytes);
  dequantize_gguf(static_cast<GgufType>(tensor.type), bytes, out);
}

}  // namespace zl
