#include "core/rank/pool.h"

#include <algorithm>
#include <map>

#include "core/base/bytes.h"

namespace zl {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

void Buffer::reset() {
  if (pool_ != nullptr) pool_->free(block_);
  pool_ = nullptr;
  block_ = nullptr;
}

std::int64_t MemoryShare::reserved() const {
  std::int64_t sum = 0;
  for (const Pool* pool : pools) sum += pool->reserved();
  return sum;
}

Pool::Pool(Device& device, MemorySpace space, Ledger& ledger, std::int64_t budget,
           MemoryShare* share)
    : device_(device), space_(space), ledger_(ledger), budget_(budget), share_(share) {
  if (share_ != nullptr) share_->pools.push_back(this);
}

Pool::~Pool() {
  for (const auto& [data, size] : slabs_) device_.release(space_, data, size);
}

Buffer Pool::allocate(std::int64_t bytes, MemoryTag tag, Label label) {
  const std::int64_t size = std::max(kAlignment, round_up(bytes, kAlignment));
  PoolBlock* block = free_.best_fit(size);
  if (block == nullptr) block = grow(size);
  if (block == nullptr) throw OutOfMemory(out_of_memory_message(bytes, label), bytes);
  free_.erase(block);
  block = split(block, size);
  block->live = true;
  block->requested = bytes;
  block->tag = tag;
  block->label = label;
  ledger_.add(space_, tag, bytes);
  if (observer_ != nullptr) observer_->on_allocate(space_, tag, label, bytes, block->data);
  return Buffer(this, block);
}

// A new slab: the usual size, or exactly the request when that is larger or the limit is near.
PoolBlock* Pool::grow(std::int64_t size) {
  const std::int64_t left = std::min(left_of_budget(), left_of_share());
  if (size > left) return nullptr;
  // Near the end of a share nothing is taken that others of it may need.
  const std::int64_t usual = std::clamp(left_of_share() / 8, kAlignment, kSlab);
  const std::int64_t unit = usual < kSlab ? kAlignment : std::int64_t{2} << 20;
  const std::int64_t wanted = std::min(std::max(usual, round_up(size, unit)), left);
  const std::int64_t bytes = std::max(size, wanted / kAlignment * kAlignment);
  std::byte* slab = device_.reserve(space_, bytes);
  if (slab == nullptr) return nullptr;
  slabs_.emplace_back(slab, bytes);
  reserved_ += bytes;
  PoolBlock* block = make_block();
  *block = PoolBlock{};
  block->data = slab;
  block->size = bytes;
  block->slab = slabs_.size() - 1;
  free_.insert(block);
  return block;
}

PoolBlock* Pool::split(PoolBlock* block, std::int64_t size) {
  if (block->size == size) return block;
  PoolBlock* rest = make_block();
  *rest = PoolBlock{};
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->slab = block->slab;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->size = size;
  free_.insert(rest);
  return block;
}

void Pool::merge_next(PoolBlock* block) {
  PoolBlock* next = block->next;
  block->size += next->size;
  block->next = next->next;
  if (block->next != nullptr) block->next->previous = block;
  unused_.push_back(next);
}

void Pool::free(PoolBlock* block) {
  ledger_.remove(space_, block->tag, block->requested);
  if (observer_ != nullptr) observer_->on_free(space_, block->tag, block->requested, block->data);
  block->live = false;
  const auto is_free = [](const PoolBlock* other) { return other != nullptr && !other->live; };
  if (is_free(block->next)) {
    free_.erase(block->next);
    merge_next(block);
  }
  if (is_free(block->previous)) {
    block = block->previous;
    free_.erase(block);
    merge_next(block);
  }
  free_.insert(block);
}

PoolBlock* Pool::make_block() {
  if (unused_.empty()) return &storage_.emplace_back();
  PoolBlock* block = unused_.back();
  unused_.pop_back();
  return block;
}

std::int64_t Pool::left_of_budget() const { return budget_ > 0 ? budget_ - reserved_ : INT64_MAX; }

std::int64_t Pool::left_of_share() const {
  return share_ != nullptr && share_->bytes > 0 ? share_->bytes - share_->reserved() : INT64_MAX;
}

std::string Pool::out_of_memory_message(std::int64_t bytes, Label label) const {
  const bool of_share =
      share_ != nullptr && share_->bytes > 0 && left_of_share() <= left_of_budget();
  std::string text = std::string("out of ") + name_of(space_) + " memory: " + format_bytes(bytes) +
                     " requested for '" + label.what + "'" +
                     (label.unit >= 0 ? " of unit " + std::to_string(label.unit) : "") + ", " +
                     format_bytes(ledger_.total(space_)) + " in use, " + format_bytes(reserved_) +
                     " reserved";
  if (of_share) {
    text += "; in all spaces " + format_bytes(share_->reserved()) + " of " +
            format_bytes(share_->bytes) + ", this rank's share of the machine's memory";
  } else if (budget_ > 0) {
    text += " of a budget of " + format_bytes(budget_);
  }
  return text + largest_holders(of_share ? share_->pools : std::vector<const Pool*>{this});
}

std::string Pool::largest_holders(const std::vector<const Pool*>& pools) {
  std::map<std::string, std::int64_t> holders;
  for (const Pool* pool : pools) {
    for (const PoolBlock& block : pool->storage_) {
      if (!block.live) continue;
      holders[std::string(name_of(block.tag)) + " '" + block.label.what + "'"] += block.requested;
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(holders.begin(), holders.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = sorted.empty() ? "; nothing is held yet" : "; largest holders:";
  for (std::size_t i = 0; i < std::min<std::size_t>(4, sorted.size()); ++i) {
    text += (i ? ", " : " ") + sorted[i].first + " " + format_bytes(sorted[i].second);
  }
  return text;
}

}  // namespace zl
