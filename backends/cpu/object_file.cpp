#include "backends/cpu/object_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/crc32c.h"
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
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    case EIO:
      return "; the drive failed: see the kernel's log, choose another nvme_path";
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

// A file above the process's limit would end it by a signal instead of an error.
int file_size_limit(std::int64_t bytes) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known && static_cast<rlim_t>(bytes) > limit.rlim_cur ? EFBIG : 0;
}

void reserve_room(int file, const std::string& path, std::int64_t bytes) {
  int status = file_size_limit(bytes);
  if (status == 0) status = fallocate(file, 0, 0, bytes) == 0 ? 0 : errno;
  if (status == EOPNOTSUPP) status = ftruncate(file, bytes) == 0 ? 0 : errno;
  if (status == 0) return;
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

OpenFile::OpenFile(const std::string& path, bool create) {
  const int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0);
  constexpr mode_t kOwner = 0600;
  descriptor_ = open(path.c_str(), flags | O_DIRECT, kOwner);
  if (descriptor_ < 0 && errno == EINVAL) {  // some file systems make the file, then refuse
    direct_ = false;
    descriptor_ = open(path.c_str(), flags & ~O_EXCL, kOwner);
  }
  if (descriptor_ >= 0) return;
  if (!create && errno == ENOENT) {
    throw Error(ErrorCode::failed, path + ": the file was removed while the run used it");
  }
  fail(path, errno);
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

ObjectFile::ObjectFile(const std::string& path, const ObjectLayout& layout)
    : ObjectFile(ExistingTag{}, path, layout) {
  const OpenFile file(path, true);
  reserve_room(file.descriptor(), path_, layout_.file_bytes());
}

ObjectFile ObjectFile::existing(const std::string& path, const ObjectLayout& layout) {
  return {ExistingTag{}, path, layout};
}

ObjectFile::ObjectFile(ExistingTag, std::string path, const ObjectLayout& layout)
    : path_(std::move(path)), layout_(layout), found_(layout.blocks()) {
  const std::size_t bytes = layout.header_bytes();
  header_.reset(static_cast<std::byte*>(std::aligned_alloc(ObjectLayout::kPage, bytes)));
  if (header_ == nullptr) throw std::bad_alloc();
}

void ObjectFile::check(std::span<const ObjectPart> parts) const {
  ZL_CHECK(parts.size() == layout_.parts().size(), "an object is transferred whole");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ZL_CHECK(parts[i].bytes == layout_.parts()[i], "a part has the size of its layout");
    ZL_CHECK(reinterpret_cast<std::uintptr_t>(parts[i].data) % ObjectLayout::kPage == 0,
             "a part of an object starts on a page");
  }
}

IoRequest ObjectFile::header_request(int file, int slot, bool write) const {
  return {file, write, header_.get(), layout_.header_bytes(), slot * layout_.slot_bytes()};
}

std::vector<IoRequest> ObjectFile::requests(int file, std::span<const ObjectPart> parts, int slot,
                                            bool write) {
  std::vector<IoRequest> all;
  all.reserve(found_.size() + 1);  // room for the header's
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t begin = slot * layout_.slot_bytes() + layout_.part_offset(i);
    for (std::int64_t done = 0; done < parts[i].bytes; done += layout_.block_size()) {
      const std::int64_t payload = std::min(layout_.block_size(), parts[i].bytes - done);
      all.push_back({file, write, parts[i].data + done, padded(payload), begin + done,
                     &found_[all.size()], payload});
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

ObjectFile::Header& ObjectFile::header() const { return *reinterpret_cast<Header*>(header_.get()); }

void ObjectFile::fill_header(std::uint64_t generation) {
  std::memset(header_.get(), 0, layout_.header_bytes());
  header() = {kMagic, generation, layout_.blocks(), 0, 0};
  std::copy(found_.begin(), found_.end(), header().block_crcs());
  header().own_crc = crc32c(header_.get(), layout_.header_bytes());
}

bool ObjectFile::header_holds() const {
  const std::uint32_t found = std::exchange(header().own_crc, 0);
  const bool holds = header().magic == kMagic && header().blocks == layout_.blocks() &&
                     found == crc32c(header_.get(), layout_.header_bytes());
  header().own_crc = found;
  return holds;
}

void ObjectFile::verify(std::span<const IoRequest> requests, int slot) const {
  const std::uint32_t* expected = header().block_crcs();
  const auto wrong = std::mismatch(found_.begin(), found_.end(), expected).first;
  if (wrong == found_.end()) return;
  const std::size_t block = wrong - found_.begin();
  throw Error(ErrorCode::failed, path_ + ": the checksum of block " + std::to_string(block) +
                                     " of slot " + std::to_string(slot) + " (" +
                                     std::to_string(requests[block].payload) + " bytes at offset " +
                                     std::to_string(requests[block].offset) +
                                     ") does not match: the file was changed or the drive failed");
}

void ObjectFile::write(IoEngine& engine, std::span<const ObjectPart> parts) {
  check(parts);
  const OpenFile file(path_, false);
  const std::uint64_t next = generation_ + 1;
  run(engine, requests(file.descriptor(), parts, slot_of(next), true));
  fill_header(next);
  // Only now: a header is never there before its blocks.
  const IoRequest last = header_request(file.descriptor(), slot_of(next), true);
  run(engine, {&last, 1});
  generation_ = next;
}

void ObjectFile::read(IoEngine& engine, std::span<const ObjectPart> parts) {
  ZL_CHECK(generation_ > 0, "an object is written before it is read");
  read_slot(engine, slot_of(generation_), parts);
  const std::uint64_t found = header().generation;
  if (found == generation_) return;
  throw Error(ErrorCode::failed, path_ + ": holds generation " + std::to_string(found) +
                                     " instead of " + std::to_string(generation_) +
                                     ": a write was lost or somebody else wrote to the file");
}

std::uint64_t ObjectFile::claimed(IoEngine& engine, int slot) {
  const OpenFile file(path_, false);
  const IoRequest request = header_request(file.descriptor(), slot, false);
  run(engine, {&request, 1});
  return header_holds() ? header().generation : 0;
}

void ObjectFile::read_slot(IoEngine& engine, int slot, std::span<const ObjectPart> parts) {
  check(parts);
  const OpenFile file(path_, false);
  std::vector<IoRequest> all = requests(file.descriptor(), parts, slot, false);
  all.push_back(header_request(file.descriptor(), slot, false));
  run(engine, all);
  if (!header_holds()) {
    throw Error(ErrorCode::failed, path_ + ": the header of slot " + std::to_string(slot) +
                                       " is not one of zerolab's or its checksum does not match");
  }
  verify(all, slot);
}

}  // namespace zl::cpu
