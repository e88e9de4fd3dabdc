// The free blocks of a pool, the smallest first, of equal ones the oldest slab's first and there
// the lowest address: where the system places slabs must not matter.
// Ownership: refers to blocks of the pool. Threads: used by one rank's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace zl {

// Block: with size, slab and data.
template <class Block>
class FreeBlocks {
 public:
  // The first that has so many bytes; null: none.
  Block* best_fit(std::int64_t size) const {
    const auto found = std::ranges::lower_bound(sizes_, size);
    return found == sizes_.end() ? nullptr : blocks_[index(found)];
  }
  void insert(Block* block) {
    const auto at = static_cast<std::ptrdiff_t>(place_of(block));
    sizes_.insert(sizes_.begin() + at, block->size);
    blocks_.insert(blocks_.begin() + at, block);
  }
  // It is as it was when it was inserted.
  void erase(const Block* block) {
    const auto at = static_cast<std::ptrdiff_t>(place_of(block));
    sizes_.erase(sizes_.begin() + at);
    blocks_.erase(blocks_.begin() + at);
  }

 private:
  using Sizes = std::vector<std::int64_t>;

  std::size_t index(Sizes::const_iterator size) const {
    return static_cast<std::size_t>(size - sizes_.begin());
  }
  std::size_t place_of(const Block* block) const {
    const auto [begin, end] = std::equal_range(sizes_.begin(), sizes_.end(), block->size);
    const auto place = std::lower_bound(
        blocks_.begin() + (begin - sizes_.begin()), blocks_.begin() + (end - sizes_.begin()), block,
        [](const Block* a, const Block* b) {
          return a->slab != b->slab ? a->slab < b->slab : a->data < b->data;
        });
    return static_cast<std::size_t>(place - blocks_.begin());
  }

  Sizes sizes_;  // of the blocks: what a search reads lies together
  std::vector<Block*> blocks_;
};

}  // namespace zl
