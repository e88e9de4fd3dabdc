// One object's file: two slots of a header and the parts (see ObjectLayout).
// Ownership: owns the room in the file, not its name; the file is open only while it is used, so
// that objects may outnumber the descriptors of the process. Threads: one call at a time.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/io_engine.h"
#include "core/device/storage.h"

namespace zl::cpu {

// An open file, closed at the end.
class OpenFile {
 public:
  // With O_DIRECT where the file system takes it. Error{failed} naming the path. `create`: it must
  // not exist.
  OpenFile(const std::string& path, bool create);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }
  bool direct() const { return direct_; }

 private:
  int descriptor_ = -1;
  bool direct_ = true;
};

class ObjectFile {
 public:
  // Makes the file and reserves its room.
  ObjectFile(const std::string& path, const ObjectLayout& layout);
  // An existing file.
  static ObjectFile existing(const std::string& path, const ObjectLayout& layout);

  const std::string& path() const { return path_; }
  std::uint64_t generation() const { return generation_; }

  // Error{failed} naming file, offset and cause.
  void write(IoEngine& engine, std::span<const ObjectPart> parts);
  void read(IoEngine& engine, std::span<const ObjectPart> parts);
  // The generation that a slot's header claims; 0: none.
  std::uint64_t claimed(IoEngine& engine, int slot);
  // Reads that slot.
  void read_slot(IoEngine& engine, int slot, std::span<const ObjectPart> parts);

 private:
  struct Header;
  struct FreeHeader {
    void operator()(std::byte* memory) const;
  };
  struct ExistingTag {};

  ObjectFile(ExistingTag, std::string path, const ObjectLayout& layout);
  void check(std::span<const ObjectPart> parts) const;
  // In the order of the blocks; each leaves its checksum in found_.
  std::vector<IoRequest> requests(int file, std::span<const ObjectPart> parts, int slot,
                                  bool write);
  IoRequest header_request(int file, int slot, bool write) const;
  void run(IoEngine& engine, std::span<const IoRequest> requests);
  Header& header() const;
  void fill_header(std::uint64_t generation);
  bool header_holds() const;
  void verify(std::span<const IoRequest> requests, int slot) const;
  int slot_of(std::uint64_t generation) const { return static_cast<int>(generation % 2); }

  std::string path_;
  ObjectLayout layout_;
  std::uint64_t generation_ = 0;  // of the valid slot; 0: nothing was written
  std::unique_ptr<std::byte, FreeHeader> header_;
  std::vector<std::uint32_t> found_;  // CRC32C of each block as it was last moved
};

}  // namespace zl::cpu
