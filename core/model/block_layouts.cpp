#include "core/model/block_layouts.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"

namespace zl {
namespace {

constexpr std::array<const char*, kSparseModes> kNames = {
    "dense", "fixed", "variable", "bigbird", "bslongformer", "local_sliding", "layout"};

// Blocks of one head while they are put down, in any order.
class LayoutBuilder {
 public:
  LayoutBuilder(const SparseAttentionConfig& config, const LayoutsOf& of, std::int64_t head)
      : config_(config), of_(of), head_(head), blocks_(of.sequence / config.block) {
    rows_.resize(static_cast<std::size_t>(blocks_));
  }

  BlockLayout build() {
    switch (config_.mode) {
      case SparseMode::dense:
        columns(0, blocks_, 0);
        break;
      case SparseMode::fixed:
        fixed();
        break;
      case SparseMode::variable:
        variable();
        break;
      case SparseMode::bigbird:
        random();
        sliding();
        global(0, config_.num_global_blocks, true);
        break;
      case SparseMode::bslongformer:
        sliding();
        listed_globals(true);
        break;
      case SparseMode::local_sliding:
        sliding();
        break;
      case SparseMode::layout:
        own();
        break;
    }
    BlockLayout layout{config_.block, {}};
    for (const auto& row : rows_) layout.rows.emplace_back(row.begin(), row.end());
    return layout;
  }

 private:
  void put(std::int64_t row, std::int64_t column) {
    if (!config_.bidirectional && column > row) return;
    rows_[static_cast<std::size_t>(row)].insert(static_cast<std::int32_t>(column));
  }
  // Columns [begin, end) of the rows from `row` on.
  void columns(std::int64_t begin, std::int64_t end, std::int64_t row) {
    for (; row < blocks_; ++row) {
      for (std::int64_t c = begin; c < std::min(end, blocks_); ++c) put(row, c);
    }
  }
  // The blocks that all see and, with `rows`, that see all. Causal: from the first one's row on.
  void global(std::int64_t begin, std::int64_t end, bool rows) {
    columns(begin, end, config_.bidirectional ? 0 : begin);
    for (std::int64_t row = begin; rows && row < std::min(end, blocks_); ++row) {
      for (std::int64_t c = 0; c < blocks_; ++c) put(row, c);
    }
  }
  void window(std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t c = begin; c < end; ++c) put(row, c);
    }
  }

  void fixed() {
    const std::int64_t size = config_.num_local_blocks, globals = config_.num_global_blocks;
    for (std::int64_t w = 0; w < blocks_; w += size) window(w, std::min(w + size, blocks_));
    const std::int64_t pattern = head_ % config_.num_different_global_patterns;
    const std::int64_t first = size - (1 + pattern) * globals;
    for (std::int64_t w = 0; w < blocks_; w += size) {
      const bool whole = w + size <= blocks_;
      const std::int64_t begin = whole ? w + first : std::min(w + first, blocks_ - globals);
      global(begin, begin + globals, config_.horizontal_global_attention);
    }
  }

  void variable() {
    random();
    std::size_t next = 0;
    const std::vector<std::int64_t>& sizes = config_.local_window_blocks;
    for (std::int64_t w = 0; w < blocks_;) {
      const std::int64_t size = sizes[std::min(next++, sizes.size() - 1)];
      window(w, std::min(w + size, blocks_));
      w += size;
    }
    listed_globals(config_.horizontal_global_attention);
  }

  void listed_globals(bool rows) {
    for (std::size_t i = 0; i < config_.global_block_indices.size(); ++i) {
      const std::int64_t begin = config_.global_block_indices[i];
      const bool ranges = !config_.global_block_end_indices.empty();
      if (begin >= blocks_) continue;
      global(begin, ranges ? config_.global_block_end_indices[i] : begin + 1, rows);
    }
  }

  void sliding() {
    const std::int64_t reach = config_.num_sliding_window_blocks / 2;
    for (std::int64_t row = 0; row < blocks_; ++row) {
      const std::int64_t end = std::min(row + reach + 1, blocks_);
      for (std::int64_t c = std::max<std::int64_t>(0, row - reach); c < end; ++c) put(row, c);
    }
  }

  // Different columns of every row, by Floyd's algorithm; causal: of those up to the row.
  void random() {
    const RngKey key{config_.seed, static_cast<std::uint32_t>(of_.layer), kLayoutStream};
    for (std::int64_t row = 0; row < blocks_; ++row) {
      const std::int64_t of = config_.bidirectional ? blocks_ : row + 1;
      std::set<std::int64_t> chosen;
      for (std::int64_t last = std::max<std::int64_t>(0, of - config_.num_random_blocks); last < of;
           ++last) {
        const auto place = static_cast<std::uint64_t>((head_ << 44) + (row << 22) + last);
        const std::int64_t drawn = random_bits(key, place) % (last + 1);
        chosen.insert(chosen.contains(drawn) ? last : drawn);
      }
      for (const std::int64_t c : chosen) put(row, c);
    }
  }

  void own() {
    for (std::int64_t row = 0; row < blocks_; ++row) {
      const std::string& line = config_.rows[static_cast<std::size_t>(row)];
      for (std::int64_t c = 0; c < blocks_; ++c) {
        if (line[static_cast<std::size_t>(c)] == '#') put(row, c);
      }
    }
  }

  const SparseAttentionConfig& config_;
  const LayoutsOf& of_;
  std::int64_t head_, blocks_;
  std::vector<std::set<std::int32_t>> rows_;
};

std::string number(std::int64_t value) { return std::to_string(value); }

std::string fixed_conflict(const SparseAttentionConfig& c) {
  const std::int64_t local = c.num_local_blocks, global = c.num_global_blocks;
  if (local % global != 0) {
    return "num_local_blocks: " + number(local) + " is no multiple of num_global_blocks, " +
           number(global);
  }
  const std::int64_t patterns = c.num_different_global_patterns;
  if (patterns > 1 && !c.different_layout_per_head) {
    return "num_different_global_patterns: " + number(patterns) +
           " patterns need different_layout_per_head: true";
  }
  if (patterns > local / global) {
    return "num_different_global_patterns: " + number(patterns) + " is above " +
           number(local / global) + ", num_local_blocks / num_global_blocks";
  }
  return {};
}

std::string globals_conflict(const SparseAttentionConfig& c) {
  const std::vector<std::int64_t>& begins = c.global_block_indices;
  const std::vector<std::int64_t>& ends = c.global_block_end_indices;
  if (ends.empty()) return {};
  if (ends.size() != begins.size()) {
    return "global_block_end_indices: has " + number(static_cast<std::int64_t>(ends.size())) +
           " numbers, global_block_indices " + number(static_cast<std::int64_t>(begins.size()));
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] > begins[i]) continue;
    return "global_block_end_indices: " + number(ends[i]) + " is not above its start, " +
           number(begins[i]);
  }
  return {};
}

// The user's rows.
std::string rows_conflict(const SparseAttentionConfig& c) {
  const std::size_t blocks = c.rows.size();
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::string& row = c.rows[i];
    const std::string which = "x-zerolab.block_layout: row " + std::to_string(i);
    if (row.size() != blocks) {
      return which + " has " + std::to_string(row.size()) + " blocks where there are " +
             std::to_string(blocks) + " rows";
    }
    if (row.find_first_not_of("#.") != std::string::npos) {
      return which + " has other characters than # (a block) and . (none)";
    }
    if (!c.bidirectional && row.substr(0, i + 1).find('#') == std::string::npos) {
      return which + " has no block up to the diagonal";
    }
  }
  return blocks == 0 ? "x-zerolab.block_layout: mode \"layout\" needs its rows" : "";
}

bool has_horizontal(SparseMode mode) {
  return mode == SparseMode::fixed || mode == SparseMode::variable;
}

}  // namespace

const char* name_of(SparseMode mode) { return kNames[static_cast<std::size_t>(mode)]; }

namespace {

std::string keys_conflict(const SparseAttentionConfig& config, bool causal) {
  if (config.block < 16 || config.block > 128 || config.block % 16 != 0) {
    return "block: " + number(config.block) + " is not a multiple of 16 from 16 to 128";
  }
  if (causal && config.bidirectional) {
    return "attention: \"bidirectional\" would let a decoder see the tokens that it predicts; "
           "write "
           "\"attention\": \"unidirectional\"";
  }
  if (has_horizontal(config.mode) && config.horizontal_global_attention && !config.bidirectional) {
    return "horizontal_global_attention: needs \"attention\": \"bidirectional\"";
  }
  if (config.mode == SparseMode::fixed) return fixed_conflict(config);
  if (config.mode == SparseMode::layout) return rows_conflict(config);
  if (config.mode == SparseMode::variable && config.local_window_blocks.empty()) {
    return "local_window_blocks: needs a number of blocks";
  }
  const bool listed =
      config.mode == SparseMode::variable || config.mode == SparseMode::bslongformer;
  return listed ? globals_conflict(config) : "";
}

std::string length_conflict(const SparseAttentionConfig& config, std::int64_t sequence) {
  const std::int64_t blocks = sequence / config.block;
  if (sequence % config.block != 0 || blocks == 0) {
    return "block: " + number(config.block) + " does not divide the sequence length " +
           number(sequence) + "; use " + number(std::max<std::int64_t>(1, blocks) * config.block) +
           " or " + number((blocks + 1) * config.block);
  }
  const auto few = [&](const char* key, std::int64_t wanted) {
    return std::string(key) + ": " + number(wanted) + " is more than the " + number(blocks) +
           " blocks of a sequence of " + number(sequence);
  };
  if (config.mode == SparseMode::layout &&
      blocks != static_cast<std::int64_t>(config.rows.size())) {
    return "x-zerolab.block_layout: has " + std::to_string(config.rows.size()) +
           " rows where a sequence of " + number(sequence) + " has " + number(blocks) +
           " blocks of " + number(config.block);
  }
  const bool random = config.mode == SparseMode::bigbird || config.mode == SparseMode::variable;
  if (random && config.num_random_blocks > blocks) {
    return few("num_random_blocks", config.num_random_blocks);
  }
  const bool slides = config.mode == SparseMode::bigbird ||
                      config.mode == SparseMode::bslongformer ||
                      config.mode == SparseMode::local_sliding;
  if (slides && config.num_sliding_window_blocks > blocks) {
    return few("num_sliding_window_blocks", config.num_sliding_window_blocks);
  }
  const bool counted = config.mode == SparseMode::bigbird || config.mode == SparseMode::fixed;
  if (counted && config.num_global_blocks > blocks) {
    return few("num_global_blocks", config.num_global_blocks);
  }
  return {};
}

// With the whole path of the key.
std::string with_section(const std::string& conflict) {
  if (conflict.empty() || conflict.starts_with("x-zerolab.")) return conflict;
  return "sparse_attention." + conflict;
}

}  // namespace

std::string sparse_conflict(const SparseAttentionConfig& config, bool causal) {
  return config.is_sparse() ? with_section(keys_conflict(config, causal)) : "";
}

std::string sparse_conflict(const SparseAttentionConfig& config, bool causal,
                            std::int64_t sequence) {
  std::string conflict = sparse_conflict(config, causal);
  if (!conflict.empty() || !config.is_sparse()) return conflict;
  return with_section(length_conflict(config, sequence));
}

bool differs_by_layer(const SparseAttentionConfig& config) {
  const bool random = config.mode == SparseMode::bigbird || config.mode == SparseMode::variable;
  return random && config.num_random_blocks > 0;
}

std::vector<BlockLayout> block_layouts(const SparseAttentionConfig& config, const LayoutsOf& of) {
  if (const std::string conflict = sparse_conflict(config, !config.bidirectional, of.sequence);
      !conflict.empty()) {
    throw Error(ErrorCode::invalid, conflict);
  }
  std::vector<BlockLayout> layouts;
  const std::int64_t count = config.different_layout_per_head ? of.heads : 1;
  const std::int64_t first = config.different_layout_per_head ? of.first_head : 0;
  for (std::int64_t head = first; head < first + count; ++head) {
    layouts.push_back(LayoutBuilder(config, of, head).build());
  }
  return layouts;
}

}  // namespace zl
