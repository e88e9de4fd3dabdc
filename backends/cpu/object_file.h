// One object's file: two slots of a header and the parts (see ObjectLayout).
// Ownership: owns the open file, not its name. Threads: one call at a time.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/io_engine.h"
#include "core/device/storage.h"

namespace zl::cpu {

// How a new file is opened.
struct Opened {
  int file = -1;
  bool direct = false;  // O_DIRECT
};
// Error{failed} naming the path. `create`: it must not exist.
Opened open_object(const std::string& path, bool create);

class ObjectFile {
 public:
  // Makes the file and reserves its room.
  ObjectFile(const std::string& path, const ObjectLayout& layout);
  // An existing file.
  static ObjectFile existing(const std::string& path, const ObjectLayout& layout);
  ObjectFile(ObjectFile&& other) noexcept;
  ObjectFile& operator=(ObjectFile&&) = delete;
  ~ObjectFile();

  const std::string& path() const { return path_; }
  bool direct() const { return opened_.direct; }
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

  ObjectFile(std::string path, const ObjectLayout& layout, Opened opened);
  void check(std::span<const ObjectPart> parts) const;
  std::vector<IoRequest> requests(std::span<const ObjectPart> parts, int slot, bool write) const;
  IoRequest header_request(int slot, bool write) const;
  void run(IoEngine& engine, std::span<const IoRequest> requests);
  void fill_header(std::span<const ObjectPart> parts, std::uint64_t generation);
  bool header_holds() const;
  void verify(std::span<const ObjectPart> parts, int slot) const;
  int slot_of(std::uint64_t generation) const { return static_cast<int>(generation % 2); }

  std::string path_;
  ObjectLayout layout_;
  Opened opened_;
  std::uint64_t generation_ = 0;  // of the valid slot; 0: nothing was written
  std::unique_ptr<std::byte, FreeHeader> header_;
};

}  // namespace zl::cpu
