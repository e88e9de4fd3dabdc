#include "core/device/storage.h"

#include <utility>

#include "core/base/error.h"

namespace zl {
namespace {

std::int64_t pages(std::int64_t bytes) {
  return (bytes + ObjectLayout::kPage - 1) / ObjectLayout::kPage * ObjectLayout::kPage;
}

}  // namespace

ObjectLayout::ObjectLayout(std::vector<std::int64_t> part_bytes, std::int64_t block_size)
    : parts_(std::move(part_bytes)), block_size_(block_size) {
  if (block_size < kPage || block_size % kPage != 0) {
    throw Error(ErrorCode::invalid, "aio.block_size: " + std::to_string(block_size) +
                                        " is not a positive multiple of 4096");
  }
  for (const std::int64_t bytes : parts_) ZL_CHECK(bytes > 0, "a part of an object has bytes");
}

std::int64_t ObjectLayout::blocks() const {
  std::int64_t count = 0;
  for (const std::int64_t bytes : parts_) count += (bytes + block_size_ - 1) / block_size_;
  return count;
}

// Magic, generation, number of blocks and the header's own checksum take 32 bytes.
std::int64_t ObjectLayout::header_bytes() const { return pages(32 + 4 * blocks()); }

std::int64_t ObjectLayout::slot_bytes() const { return part_offset(parts_.size()); }

std::int64_t ObjectLayout::part_offset(std::size_t part) const {
  std::int64_t offset = header_bytes();
  for (std::size_t i = 0; i < part; ++i) offset += pages(parts_[i]);
  return offset;
}

}  // namespace zl
