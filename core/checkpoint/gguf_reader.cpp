#include "core/checkpoint/gguf_reader.h"

#include <algorithm>

#include "core/base/error.h"

namespace zl {
namespace {

constexpr int kMostNested = 8;
constexpr std::size_t kWindow = 1 << 20;  // bytes of the header that are read at once

enum ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kList,
  kU64,
  kI64,
  kF64  // NOLINT
};

// Bytes that one value takes at least.
std::uint64_t least_size(std::uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    case kList:
      return 12;
    case kText:
    case kU64:
    case kI64:
    case kF64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

void GgufReader::refuse(const std::string& defect) const {
  throw Error(ErrorCode::invalid, file_.path() + ": " + defect);
}

void GgufReader::require(std::uint64_t count, std::uint64_t size, const std::string& what) const {
  if (count <= left() / size) return;
  refuse(what + " at byte " + std::to_string(position()) + " needs more than the " +
         std::to_string(left()) + " bytes that are left; the file is truncated or damaged");
}

std::string GgufReader::take_text(const std::string& what) {
  const auto size = take<std::uint64_t>(what);
  require(size, 1, what);
  std::string text(size, '\0');
  copy(std::as_writable_bytes(std::span(text)));
  return text;
}

void GgufReader::copy(std::span<std::byte> out) {
  if (out.size() > window_.size() - at_) {
    begin_ = position();
    const auto rest = static_cast<std::size_t>(file_.size() - begin_);
    window_.resize(std::min(rest, std::max(kWindow, out.size())));
    file_.read(begin_, window_);
    at_ = 0;
  }
  std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(at_), out.size(), out.begin());
  at_ += out.size();
}

GgufList GgufReader::take_list(const std::string& what, int depth) {
  if (depth == kMostNested) refuse(what + ": lists within lists beyond depth 8");
  const auto type = take<std::uint32_t>(what);
  const auto count = take<std::uint64_t>(what);
  if (least_size(type) == 0) refuse(what + ": unknown type " + std::to_string(type));
  require(count, least_size(type), what);
  GgufList list;
  for (std::uint64_t i = 0; i < count; ++i) {
    GgufValue item = take_value(type, what, depth + 1);
    if (auto* text = std::get_if<std::string>(&item)) list.texts.push_back(std::move(*text));
    if (const auto* value = std::get_if<double>(&item)) list.numbers.push_back(*value);
    if (const auto* value = std::get_if<std::int64_t>(&item)) {
      list.numbers.push_back(static_cast<double>(*value));
    }
    if (const auto* value = std::get_if<std::uint64_t>(&item)) {
      list.numbers.push_back(static_cast<double>(*value));
    }
    if (const auto* value = std::get_if<bool>(&item)) list.numbers.push_back(*value ? 1 : 0);
  }
  return list;
}

GgufValue GgufReader::take_value(std::uint32_t type, const std::string& what, int depth) {
  switch (type) {
    case kU8:
      return std::uint64_t{take<std::uint8_t>(what)};
    case kI8:
      return std::int64_t{take<std::int8_t>(what)};
    case kU16:
      return std::uint64_t{take<std::uint16_t>(what)};
    case kI16:
      return std::int64_t{take<std::int16_t>(what)};
    case kU32:
      return std::uint64_t{take<std::uint32_t>(what)};
    case kI32:
      return std::int64_t{take<std::int32_t>(what)};
    case kF32:
      return double{take<float>(what)};
    case kBool:
      return take<std::uint8_t>(what) != 0;
    case kText:
      return take_text(what);
    case kList:
      return take_list(what, depth);
    case kU64:
      return take<std::uint64_t>(what);
    case kI64:
      return take<std::int64_t>(what);
    case kF64:
      return take<double>(what);
    default:
      refuse(what + ": unknown type " + std::to_string(type));
  }
}

}  // namespace zl
