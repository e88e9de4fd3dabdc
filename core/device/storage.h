// The file tier of one rank: objects (the tensors of a sub-group, a weight) written whole and read
// whole, every transfer checked. Which bytes a transfer costs is plain arithmetic (ObjectLayout),
// so the simulator knows them without a disk.
// Ownership: a Storage owns its files and removes them. Threads: create() from the rank's thread;
// read() and write() block and may be called from any, one at a time per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zl {

// How the requests of a transfer are cut and kept in flight: DeepSpeed's `aio` section.
struct AioConfig {
  std::int64_t block_size = std::int64_t{1} << 20;  // bytes of one request, a multiple of 4096
  std::int64_t queue_depth = 8;                     // requests in flight
  std::int64_t threads = 1;                         // intra_op_parallelism
  bool single_submit = false;                       // one system call per request
  bool overlap_events = true;                       // refill as requests end; false: batch by batch

  bool operator==(const AioConfig&) const = default;
};

// One contiguous part of an object, in host memory; `bytes` as in the layout. `data` starts on a
// page (ObjectLayout::kPage) and has room up to the next one behind its end, which may be read and
// overwritten.
struct ObjectPart {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// Where an object lies in its file: two slots, so that a new generation never overwrites the valid
// one; each slot a header (generation, CRC32C of every block) and the parts, padded to 4096.
class ObjectLayout {
 public:
  static constexpr std::int64_t kPage = 4096;

  ObjectLayout() = default;
  // Error{invalid} when a part is empty or block_size no positive multiple of kPage.
  ObjectLayout(std::vector<std::int64_t> part_bytes, std::int64_t block_size);

  const std::vector<std::int64_t>& parts() const { return parts_; }
  std::int64_t block_size() const { return block_size_; }
  std::int64_t blocks() const;        // each part is cut into blocks of its own
  std::int64_t header_bytes() const;  // of one slot
  std::int64_t slot_bytes() const;    // header and padded parts
  std::int64_t file_bytes() const { return 2 * slot_bytes(); }
  // Offset of a part in its slot.
  std::int64_t part_offset(std::size_t part) const;
  // What one read or one write moves and how many requests it makes, header included.
  std::int64_t transfer_bytes() const { return slot_bytes(); }
  std::int64_t requests() const { return blocks() + 1; }

 private:
  std::vector<std::int64_t> parts_;
  std::int64_t block_size_ = 0;
};

using ObjectId = std::int32_t;

class Storage {
 public:
  virtual ~Storage() = default;
  // A line for people: the folder and how it is reached, "/nvme (io_uring, O_DIRECT)".
  virtual std::string describe() const = 0;
  // Reserves the room of a new object. Error{failed} naming the folder or file, what the system
  // said and the fix: no such folder, read-only, no space left, file too large.
  virtual ObjectId create(const std::string& name, const ObjectLayout& layout) = 0;
  // The newest valid generation into `parts`. Error{failed} naming file, offset and cause: a failed
  // or short read, a checksum that does not match, a file that is gone.
  virtual void read(ObjectId object, std::span<const ObjectPart> parts) = 0;
  // A new generation; the one before stays valid until this one is complete.
  virtual void write(ObjectId object, std::span<const ObjectPart> parts) = 0;
};

}  // namespace zl
