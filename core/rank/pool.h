// Stream-ordered sub-allocation in slabs. Decisions depend on program order only, so every backend
// that runs the same program gets the same offsets, peak and reserved bytes.
// Ownership: the pool owns slabs of its device; a Buffer owns one block and frees it on
// destruction; the pool must outlive its buffers. Threads: used by one rank's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/device.h"
#include "core/rank/free_blocks.h"
#include "core/rank/ledger.h"

namespace zl {

// What a block is for, in messages and the memory timeline: "qkv of unit 3".
struct Label {
  const char* what = "";
  int unit = -1;
};

// Out of memory as a value: thrown inside the engine, turned into a result by the runner.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, std::int64_t requested)
      : Error(ErrorCode::infeasible, message), requested_(requested) {}
  std::int64_t requested() const { return requested_; }

 private:
  std::int64_t requested_;
};

class Pool;

// Host memory that the pools of a rank draw their slabs from together.
struct MemoryShare {
  std::int64_t bytes = 0;  // 0: no limit
  std::vector<const Pool*> pools;

  std::int64_t reserved() const;
};

// One piece of a slab, live or free.
struct PoolBlock {
  std::byte* data = nullptr;
  std::int64_t size = 0;       // granules included
  std::int64_t requested = 0;  // what the ledger counts
  bool live = false;
  std::size_t slab = 0;  // in the order of reservation
  MemoryTag tag{};
  Label label;
  PoolBlock* previous = nullptr;  // neighbours by address in the same slab
  PoolBlock* next = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Pool* pool, PoolBlock* block) : pool_(pool), block_(block) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    reset();
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { reset(); }
  void reset();

  std::byte* data() const { return block_ == nullptr ? nullptr : block_->data; }
  std::int64_t bytes() const { return block_ == nullptr ? 0 : block_->requested; }

 private:
  Pool* pool_ = nullptr;
  PoolBlock* block_ = nullptr;
};

// Watches allocations, for the trace. Called in program order.
class AllocationObserver {
 public:
  virtual ~AllocationObserver() = default;
  virtual void on_allocate(MemorySpace, MemoryTag, Label, std::int64_t bytes, const std::byte*) = 0;
  virtual void on_free(MemorySpace, MemoryTag, std::int64_t bytes, const std::byte*) = 0;
};

class Pool {
 public:
  static constexpr std::int64_t kAlignment = 512;
  static constexpr std::int64_t kSlab = std::int64_t{64} << 20;

  // budget: most bytes to reserve from the device; 0: no limit but the device's own. share: joined
  // where given, and outlives the pool.
  Pool(Device& device, MemorySpace space, Ledger& ledger, std::int64_t budget,
       MemoryShare* share = nullptr);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Best fit, 512-byte granules; reserves a slab when nothing fits. Throws OutOfMemory naming the
  // request, the budget or share that it breaks and the largest live holders.
  Buffer allocate(std::int64_t bytes, MemoryTag tag, Label label);
  std::int64_t reserved() const { return reserved_; }
  void observe(AllocationObserver* observer) { observer_ = observer; }

 private:
  friend class Buffer;
  PoolBlock* grow(std::int64_t size);
  PoolBlock* split(PoolBlock* block, std::int64_t size);
  void merge_next(PoolBlock* block);
  void free(PoolBlock* block);
  PoolBlock* make_block();
  std::int64_t left_of_budget() const;
  std::int64_t left_of_share() const;
  std::string out_of_memory_message(std::int64_t bytes, Label label) const;
  static std::string largest_holders(const std::vector<const Pool*>& pools);

  Device& device_;
  MemorySpace space_;
  Ledger& ledger_;
  std::int64_t budget_;
  MemoryShare* share_;
  std::int64_t reserved_ = 0;
  AllocationObserver* observer_ = nullptr;
  std::deque<PoolBlock> storage_;
  std::vector<PoolBlock*> unused_;
  FreeBlocks<PoolBlock> free_;
  std::vector<std::pair<std::byte*, std::int64_t>> slabs_;
};

}  // namespace zl
