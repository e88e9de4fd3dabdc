#include "backends/cpu/object_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backends/cpu/crc32c.h"
#include "core/base/error.h"

namespace zl::cpu {
namespace {

constexpr std::uint64_t kMagic = 0x31626f6c6f72657a;  // "zerolob1"

std::int64_t padded(std::int64_t bytes) {
  return (bytes + ObjectLayout::kPage - 1) / ObjectLayout::kPage * ObjectLayout::kPage;
}

const char* remedy(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another nvme_path";
    case EFBIG:
      return "; the file system or ulimit -f allows no file that large";
    case EROFS:
    case EACCES:
    case EPERM:
      return "; choose an nvme_path that you may write to";
    case ENOENT:
    case ENOTDIR:
      return "; make the folder or choose another nvme_path";
    default:
      return "";
  }
}

[[noreturn]] void fail(const std::string& what, int code) {
  throw Error(ErrorCode::failed, what + ": " + std::strerror(code) + remedy(code));
}

void reserve_room(int file, const std::string& path, std::int64_t bytes) {
  int status = fallocate(file, 0, 0, bytes) == 0 ? 0 : errno;
  if (status == EOPNOTSUPP) status = ftruncate(file, bytes) == 0 ? 0 : errno;
  if (status == 0) return;
  close(file);
  unlink(path.c_str());
  fail(path + ": no room for " + std::to_string(bytes) + " bytes", status);
}

}  // namespace

struct ObjectFile::Header {
  std::uint64_t magic, generation;
  std::int64_t blocks;
  std::uint32_t reserved, own_crc;  // of all else in the header
  std::uint32_t* block_crcs() { return reinterpret_cast<std::uint32_t*>(this + 1); }
};

void ObjectFile::FreeHeader::operator()(std::byte* memory) const { std::free(memory); }

Opened open_object(const std::string& path, bool create) {
  const int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0);
  Opened opened{open(path.c_str(), flags | O_DIRECT, 0600), true};
  if (opened.file < 0 && errno == EINVAL) {
    opened = {open(path.c_str(), flags & ~O_EXCL, 0600), false};
  }
  if (opened.file < 0) fail(path, errno);
  return opened;
}

ObjectFile::ObjectFile(const std::string& path, const ObjectLayout& layout)
    : ObjectFile(path, layout, open_object(path, true)) {
  reserve_room(opened_.file, path_, layout_.file_bytes());
}

ObjectFile ObjectFile::existing(const std::string& path, const ObjectLayout& layout) {
  return {path, layout, open_object(path, false)};
}

ObjectFile::ObjectFile(std::string path, const ObjectLayout& layout, Opened opened)
    : path_(std::move(path)), layout_(layout), opened_(opened) {
  const auto bytes = static_cast<std::size_t>(layout.header_bytes());
  header_.reset(static_cast<std::byte*>(std::aligned_alloc(ObjectLayout::kPage, bytes)));
  std::memset(header_.get(), 0, bytes);
}

ObjectFile::ObjectFile(ObjectFile&& other) noexcept
    : path_(std::move(other.path_)),
      layout_(std::move(other.layout_)),
      opened_(std::exchange(other.opened_, {})),
      generation_(other.generation_),
      header_(std::move(other.header_)) {}

ObjectFile::~ObjectFile() {
  if (opened_.file >= 0) close(opened_.file);
}

void ObjectFile::check(std::span<const ObjectPart> parts) const {
  ZL_CHECK(parts.size() == layout_.parts().size(), "an object is transferred whole");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ZL_CHECK(parts[i].bytes == layout_.parts()[i], "a part has the size of its layout");
    ZL_CHECK(reinterpret_cast<std::uintptr_t>(parts[i].data) % ObjectLayout::kPage == 0,
             "a part of an object starts on a page");
  }
}

IoRequest ObjectFile::header_request(int slot, bool write) const {
  return {opened_.file, write, header_.get(), layout_.header_bytes(), slot * layout_.slot_bytes()};
}

std::vector<IoRequest> ObjectFile::requests(std::span<const ObjectPart> parts, int slot,
                                            bool write) const {
  std::vector<IoRequest> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t begin = slot * layout_.slot_bytes() + layout_.part_offset(i);
    const std::int64_t bytes = padded(parts[i].bytes);
    for (std::int64_t done = 0; done < bytes; done += layout_.block_size()) {
      all.push_back({opened_.file, write, parts[i].data + done,
                     std::min(layout_.block_size(), bytes - done), begin + done});
    }
  }
  return all;
}

void ObjectFile::run(IoEngine& engine, std::span<const IoRequest> requests) {
  try {
    engine.run(requests);
  } catch (const IoError& error) {
    const IoRequest& request = error.request();
    throw Error(ErrorCode::failed, path_ + ": cannot " + (request.write ? "write " : "read ") +
                                       std::to_string(request.bytes) + " bytes at offset " +
                                       std::to_string(request.offset) + ": " + error.what() +
                                       remedy(error.code()));
  }
}

// Calls f(index of the block over all parts, its bytes without padding, index of its part).
template <class F>
void for_blocks(std::span<const ObjectPart> parts, std::int64_t block_size, F&& f) {
  std::int64_t block = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::int64_t done = 0; done < parts[i].bytes; done += block_size) {
      f(block++, std::span(parts[i].data + done,
                           static_cast<std::size_t>(std::min(block_size, parts[i].bytes - done))));
    }
  }
}

void ObjectFile::fill_header(std::span<const ObjectPart> parts, std::uint64_t generation) {
  auto& header = *reinterpret_cast<Header*>(header_.get());
  header = {kMagic, generation, layout_.blocks(), 0, 0};
  for_blocks(parts, layout_.block_size(), [&](std::int64_t block, std::span<std::byte> bytes) {
    header.block_crcs()[block] = crc32c(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  });
  header.own_crc = crc32c(header_.get(), layout_.header_bytes());
}

bool ObjectFile::header_holds() const {
  auto& header = *reinterpret_cast<Header*>(header_.get());
  const std::uint32_t found = std::exchange(header.own_crc, 0);
  const bool holds = header.magic == kMagic && header.blocks == layout_.blocks() &&
                     found == crc32c(header_.get(), layout_.header_bytes());
  header.own_crc = found;
  return holds;
}

void ObjectFile::verify(std::span<const ObjectPart> parts, int slot) const {
  auto& header = *reinterpret_cast<Header*>(header_.get());
  for_blocks(parts, layout_.block_size(), [&](std::int64_t block, std::span<std::byte> bytes) {
    const std::uint32_t found = crc32c(bytes.data(), static_cast<std::int64_t>(bytes.size()));
    if (found == header.block_crcs()[block]) return;
    throw Error(ErrorCode::failed, path_ + ": the checksum of block " + std::to_string(block) +
                                       " of slot " + std::to_string(slot) +
                                       " does not match: the file was changed or the drive failed");
  });
}

void ObjectFile::write(IoEngine& engine, std::span<const ObjectPart> parts) {
  check(parts);
  const std::uint64_t next = generation_ + 1;
  fill_header(parts, next);
  run(engine, requests(parts, slot_of(next), true));
  // Only now: a header is never there before its blocks.
  const IoRequest header = header_request(slot_of(next), true);
  run(engine, {&header, 1});
  generation_ = next;
}

void ObjectFile::read(IoEngine& engine, std::span<const ObjectPart> parts) {
  ZL_CHECK(generation_ > 0, "an object is written before it is read");
  read_slot(engine, slot_of(generation_), parts);
  const auto found = reinterpret_cast<const Header*>(header_.get())->generation;
  if (found == generation_) return;
  throw Error(ErrorCode::failed, path_ + ": holds generation " + std::to_string(found) +
                                     " instead of " + std::to_string(generation_) +
                                     ": somebody else wrote to the file");
}

std::uint64_t ObjectFile::claimed(IoEngine& engine, int slot) {
  const IoRequest header = header_request(slot, false);
  run(engine, {&header, 1});
  return header_holds() ? reinterpret_cast<const Header*>(header_.get())->generation : 0;
}

void ObjectFile::read_slot(IoEngine& engine, int slot, std::span<const ObjectPart> parts) {
  check(parts);
  std::vector<IoRequest> all = requests(parts, slot, false);
  all.push_back(header_request(slot, false));
  run(engine, all);
  if (!header_holds()) {
    throw Error(ErrorCode::failed, path_ + ": the header of slot " + std::to_string(slot) +
                                       " is not one of zerolab's or its checksum does not match");
  }
  verify(parts, slot);
}

}  // namespace zl::cpu
