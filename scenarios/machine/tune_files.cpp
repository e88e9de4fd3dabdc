#include "scenarios/machine/tune_files.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/slab.h"
#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/median.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::int64_t kBlocks[] = {128 * kKiB, 512 * kKiB, kMiB, 4 * kMiB, 16 * kMiB};
constexpr std::int64_t kDepths[] = {2, 8, 32};
constexpr int kRounds = 3;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds to move a byte there and back.
double seconds_per_byte(const FileRate& rate) { return 1 / rate.read + 1 / rate.write; }

// As the pools of an offloaded run have it: a disk reads into huge pages twice as fast.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : slab_(cpu::map_slab(bytes)), bytes_(bytes) {
    if (slab_ == nullptr) throw std::bad_alloc();
    for (std::int64_t at = 0; at < bytes; at += 8) std::memcpy(slab_ + at, &at, sizeof at);
  }
  ~Memory() { cpu::unmap_slab(slab_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return slab_; }

 private:
  std::byte* slab_;
  std::int64_t bytes_;
};

void check_stop(const FileTuningOptions& options) {
  if (options.stop == nullptr || !*options.stop) return;
  throw Error(ErrorCode::interrupted, options.folder + ": interrupted, its files are removed");
}

FileRate measure(const FileTuningOptions& options, const AioConfig& aio, const ObjectPart& part) {
  const auto storage = cpu::make_file_storage(options.folder, 0, aio);
  const ObjectLayout layout({part.bytes}, aio.block_size);
  const ObjectId object = storage->create("tuning", layout);
  const std::span<const ObjectPart> parts(&part, 1);
  for (int slot = 0; slot < 2; ++slot) {  // the first one is slower
    check_stop(options);
    storage->write(object, parts);
  }
  std::vector<double> reads, writes;
  for (int round = 0; round < kRounds; ++round) {
    check_stop(options);
    const double begin = now();
    storage->write(object, parts);
    const double middle = now();
    storage->read(object, parts);
    writes.push_back(middle - begin);
    reads.push_back(now() - middle);
  }
  const auto bytes = static_cast<double>(layout.transfer_bytes());
  return {aio, bytes / median(reads), bytes / median(writes)};
}

void check_room(const std::string& folder, std::int64_t object_bytes) {
  std::error_code failed;
  const auto space = std::filesystem::space(folder, failed);
  if (failed) return;  // creating the file says what is wrong
  const std::int64_t needed = 2 * object_bytes + 16 * kMiB;
  if (space.available >= static_cast<std::uintmax_t>(needed)) return;
  throw Error(ErrorCode::failed,
              folder + ": " + format_bytes(static_cast<std::int64_t>(space.available)) +
                  " are free and " + format_bytes(needed) +
                  " are needed; free some space, choose another folder or a smaller --size");
}

// The size with which all settings take `seconds`: each moves its object eight times.
std::int64_t affordable(const FileRate& probe, double seconds, std::size_t settings,
                        std::int64_t most) {
  const double moves = static_cast<double>(settings) * (2 + kRounds) / probe.write +
                       static_cast<double>(settings) * kRounds / probe.read;
  const auto bytes = static_cast<std::int64_t>(seconds / moves) / kMiB * kMiB;
  return std::clamp(bytes, std::min(16 * kMiB, most), most);
}

std::vector<AioConfig> settings() {
  std::vector<AioConfig> all;
  for (const std::int64_t block : kBlocks) {
    for (const std::int64_t depth : kDepths) {
      AioConfig& aio = all.emplace_back();
      aio.block_size = block;
      aio.queue_depth = depth;
    }
  }
  return all;
}

// The one that takes the least memory in flight of those within 3 % of the fastest.
const FileRate& best_of(const std::vector<FileRate>& rates) {
  const auto slower = [](const FileRate& a, const FileRate& b) {
    return seconds_per_byte(a) < seconds_per_byte(b);
  };
  const double fastest = seconds_per_byte(*std::min_element(rates.begin(), rates.end(), slower));
  const FileRate* best = nullptr;
  for (const FileRate& each : rates) {
    const auto in_flight = [](const AioConfig& aio) {
      return aio.block_size * aio.queue_depth * aio.threads;
    };
    if (seconds_per_byte(each) > 1.03 * fastest) continue;
    if (best == nullptr || in_flight(each.aio) < in_flight(best->aio)) best = &each;
  }
  return *best;
}

}  // namespace

FileTuning tune_files(const FileTuningOptions& options) {
  if (options.object_bytes < kMiB) {
    throw Error(ErrorCode::invalid,
                "--size: " + format_bytes(options.object_bytes) + " are too few; use 1MiB or more");
  }
  const double end = now() + options.seconds;
  const std::vector<AioConfig> all = settings();
  const int total = static_cast<int>(all.size()) + 1;
  check_room(options.folder, options.object_bytes);
  const Memory memory(options.object_bytes);
  FileTuning tuning;
  const FileRate probe =
      measure(options, {}, {memory.data(), std::min(16 * kMiB, options.object_bytes)});
  tuning.access = cpu::describe_file_access(options.folder);
  tuning.object_bytes =
      affordable(probe, end - now(), static_cast<std::size_t>(total), options.object_bytes);
  const auto add = [&](const AioConfig& aio) {
    if (now() >= end && !tuning.rates.empty()) {
      ++tuning.skipped;
      return;
    }
    tuning.rates.push_back(measure(options, aio, {memory.data(), tuning.object_bytes}));
    if (options.progress) options.progress(static_cast<int>(tuning.rates.size()), total);
  };
  for (const AioConfig& aio : all) add(aio);
  AioConfig two = best_of(tuning.rates).aio;
  two.threads = 2;
  add(two);
  tuning.best = best_of(tuning.rates);
  return tuning;
}

std::string aio_json(const AioConfig& aio) {
  const Json section = {{"aio",
                         {{"block_size", aio.block_size},
                          {"queue_depth", aio.queue_depth},
                          {"intra_op_parallelism", aio.threads},
                          {"single_submit", aio.single_submit},
                          {"overlap_events", aio.overlap_events}}}};
  return section.dump();
}

}  // namespace zl
