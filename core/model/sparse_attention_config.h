// Block-sparse attention as DeepSpeed's section `sparse_attention` has it.
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zl {

// dense: attention without blocks. local_sliding is a class of DeepSpeed's that its files cannot
// name; layout: the user's own rows.
enum class SparseMode : std::uint8_t {
  dense,
  fixed,
  variable,
  bigbird,
  bslongformer,
  local_sliding,
  layout
};
inline constexpr int kSparseModes = 7;
const char* name_of(SparseMode mode);

struct SparseAttentionConfig {
  SparseMode mode = SparseMode::dense;
  std::int64_t block = 16;
  bool different_layout_per_head = false;
  std::int64_t num_local_blocks = 4, num_global_blocks = 1;
  bool bidirectional = true;
  bool horizontal_global_attention = false;
  std::int64_t num_different_global_patterns = 1;
  std::int64_t num_random_blocks = 0, num_sliding_window_blocks = 3;
  std::vector<std::int64_t> local_window_blocks = {4};
  std::vector<std::int64_t> global_block_indices = {0};
  std::vector<std::int64_t> global_block_end_indices = {};  // empty: single blocks
  std::vector<std::string> rows =
      {};                  // of `layout`: '#' a block that exists, '.' one that does not
  std::uint64_t seed = 0;  // of random blocks

  bool is_sparse() const { return mode != SparseMode::dense; }
  bool operator==(const SparseAttentionConfig&) const = default;
};

// Why the keys do not go together, or with a model that attends causally, beginning with the key;
// empty: they do.
std::string sparse_conflict(const SparseAttentionConfig& config, bool causal);
// The same of sequences of a length, which the keys fit.
std::string sparse_conflict(const SparseAttentionConfig& config, bool causal,
                            std::int64_t sequence);

}  // namespace zl
