#include "backends/cpu/file_storage.h"

#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

#include "backends/cpu/io_queue.h"
#include "backends/cpu/object_file.h"
#include "backends/cpu/storage_folder.h"
#include "core/base/error.h"

namespace zl::cpu {
namespace {

// Makes and removes a small file.
bool takes_direct(const std::string& folder) {
  const std::string path = folder + "/zerolab-probe-" + std::to_string(getpid());
  const OpenFile file(path, true);
  unlink(path.c_str());
  return file.direct();
}

std::string page_cache_text(bool direct) {
  return direct ? "O_DIRECT" : "page cache (no O_DIRECT in this folder)";
}

class FileStorage final : public Storage {
 public:
  FileStorage(const std::string& folder, int rank, std::unique_ptr<IoEngine> reader,
              std::unique_ptr<IoEngine> writer)
      : folder_(folder, rank), reader_(std::move(reader)), writer_(std::move(writer)) {}

  std::string describe() const override {
    return folder_.path() + " (" + reader_->name() + ", " +
           page_cache_text(takes_direct(folder_.path())) + ")";
  }

  ObjectId create(const std::string& name, const ObjectLayout& layout) override {
    auto object = std::make_unique<ObjectFile>(folder_.path() + "/" + name, layout);
    const std::lock_guard lock(mutex_);
    objects_.push_back(std::move(object));
    return static_cast<ObjectId>(objects_.size()) - 1;
  }

  void read(ObjectId object, std::span<const ObjectPart> parts) override {
    const std::lock_guard lock(reading_);
    find(object).read(*reader_, parts);
  }

  void write(ObjectId object, std::span<const ObjectPart> parts) override {
    const std::lock_guard lock(writing_);
    find(object).write(*writer_, parts);
  }

 private:
  ObjectFile& find(ObjectId object) {
    const std::lock_guard lock(mutex_);
    return *objects_[object];
  }

  StorageFolder folder_;
  std::unique_ptr<IoEngine> reader_, writer_;
  std::mutex mutex_;  // guards objects_
  std::mutex reading_, writing_;
  std::vector<std::unique_ptr<ObjectFile>> objects_;
};

}  // namespace

std::unique_ptr<Storage> make_file_storage(const std::string& folder, int rank,
                                           std::unique_ptr<IoEngine> reader,
                                           std::unique_ptr<IoEngine> writer) {
  return std::make_unique<FileStorage>(folder, rank, std::move(reader), std::move(writer));
}

std::unique_ptr<Storage> make_file_storage(const std::string& folder, int rank,
                                           const AioConfig& config,
                                           std::chrono::milliseconds timeout) {
  return make_file_storage(folder, rank, make_io_engine(config, timeout),
                           make_io_engine(config, timeout));
}

std::uint64_t recover(const std::string& file, const ObjectLayout& layout,
                      std::span<const ObjectPart> parts) {
  const auto engine = make_io_engine(make_plain_queue(), {});
  ObjectFile object = ObjectFile::existing(file, layout);
  const std::uint64_t claims[2] = {object.claimed(*engine, 0), object.claimed(*engine, 1)};
  const int newest = claims[1] > claims[0] ? 1 : 0;
  std::string why = file + ": holds no whole generation";
  for (const int slot : {newest, 1 - newest}) {
    if (claims[slot] == 0) continue;
    try {
      object.read_slot(*engine, slot, parts);
      return claims[slot];
    } catch (const Error& error) {
      why = error.what();
    }
  }
  throw Error(ErrorCode::failed, why);
}

std::string describe_file_access(const std::string& folder) {
  std::string why_not;
  const auto ring = make_uring_queue(1, why_not);
  return (ring ? ring->name() : make_plain_queue()->name()) + ", " +
         page_cache_text(takes_direct(folder)) + (ring ? "" : "; " + why_not);
}

}  // namespace zl::cpu
