#include "scenarios/deepspeed/sparse_attention.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

const std::string kSparse = "sparse_attention.", kRows = "x-zerolab.block_layout",
                  kSeed = "x-zerolab.block_seed";

const char* keys_of(SparseMode mode) {
  switch (mode) {
    case SparseMode::fixed:
      return "mode block different_layout_per_head num_local_blocks num_global_blocks attention "
             "horizontal_global_attention num_different_global_patterns";
    case SparseMode::variable:
      return "mode block different_layout_per_head num_random_blocks local_window_blocks "
             "global_block_indices global_block_end_indices attention horizontal_global_attention";
    case SparseMode::bigbird:
      return "mode block different_layout_per_head num_random_blocks num_sliding_window_blocks "
             "num_global_blocks attention";
    case SparseMode::bslongformer:
      return "mode block different_layout_per_head num_sliding_window_blocks global_block_indices "
             "global_block_end_indices attention";
    case SparseMode::local_sliding:
      return "mode block num_sliding_window_blocks attention";
    case SparseMode::layout:
      return "mode block attention";
    case SparseMode::dense:
      return "mode block";
  }
  return "";
}

// Whether DeepSpeed's files can give `attention` for the mode.
bool deepspeed_reads_attention(SparseMode mode) {
  return mode == SparseMode::fixed || mode == SparseMode::variable;
}

// An empty section is one, too: DeepSpeed's get_sparse_attention() (0.19.6; later releases refuse
// the section) takes mode "fixed" and the defaults wherever the key is there.
bool is_given(Keys& keys, const Json& document) {
  const auto section = document.find("sparse_attention");
  if (section != document.end() && section->is_object() && section->empty()) return true;
  const auto& all = keys.effects().keys();
  return std::any_of(all.begin(), all.end(), [](const GivenKey& key) {
    return key.rejection.empty() && key.path.starts_with(kSparse);
  });
}

SparseMode read_mode(Keys& keys) {
  std::string name = keys.text(kSparse + "mode");
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (int i = 0; i < kSparseModes; ++i) {
    const auto mode = static_cast<SparseMode>(i);
    if (name == name_of(mode)) return mode;
  }
  return SparseMode::fixed;
}

void read_list(Keys& keys, const std::string& path, std::vector<std::int64_t>& out) {
  out.clear();
  const Json list = keys.value(path);
  if (!list.is_array()) return;
  for (const Json& each : list) {
    const auto number = whole_number(each);
    if (!number || *number < 0 || (*number == 0 && path.ends_with("local_window_blocks"))) {
      keys.effects().reject(path, shown(each) + " is not a number of blocks");
      out.clear();
      return;
    }
    out.push_back(*number);
  }
}

void read_attention(Keys& keys, SparseAttentionConfig& config) {
  const std::string path = kSparse + "attention";
  if (!keys.is_set(path) && config.mode == SparseMode::local_sliding) {
    config.bidirectional = false;
    keys.effects().record(path, "unidirectional", EffectStatus::defaulted, "of local_sliding");
    return;
  }
  std::string text = keys.text(path);
  config.bidirectional = text.empty() || text.front() == 'b' || text.front() == 'B';
  if (!keys.is_set(path)) return;
  std::string why;
  if (!deepspeed_reads_attention(config.mode)) {
    why = "DeepSpeed does not read it for this mode, which is bidirectional there";
  }
  if (!config.bidirectional) {
    why +=
        std::string(why.empty() ? "" : "; ") +
        "inside diagonal blocks, too, keys after the query are masked, which DeepSpeed leaves to "
        "the model's code";
  }
  keys.effects().record(path, text, EffectStatus::honoured, why);
}

void read_rows(Keys& keys, SparseAttentionConfig& config) {
  for (const Json& each : keys.value(kRows)) {
    if (!each.is_string()) return keys.effects().reject(kRows, shown(each) + " is not a text");
    config.rows.push_back(each.get<std::string>());
  }
}

}  // namespace

SparseAttentionConfig build_sparse_attention(Keys& keys, const Json& document, bool causal) {
  SparseAttentionConfig config;
  if (!is_given(keys, document)) {
    if (keys.is_set(kRows)) {
      keys.effects().reject(kRows, "needs \"sparse_attention\": {\"mode\": \"layout\"}");
    }
    return config;
  }
  config.mode = read_mode(keys);
  const std::string_view taken = keys_of(config.mode);
  fields::visit_sparse_attention(config, [&](const char* name, auto& member) {
    if (!lists(taken, name)) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, std::vector<std::int64_t>>) {
      read_list(keys, kSparse + name, member);
    } else {
      keys.read(kSparse + name, member);
    }
  });
  if (lists(taken, "attention")) read_attention(keys, config);
  if (config.mode == SparseMode::layout) {
    read_rows(keys, config);
  } else if (keys.is_set(kRows)) {
    keys.effects().reject(kRows, "is of mode \"layout\", not \"" +
                                     std::string(name_of(config.mode)) + "\"; remove it");
  }
  config.seed = static_cast<std::uint64_t>(keys.integer(kSeed));
  keys.effects().mark_unused(
      kSparse, "no effect: not a key of mode \"" + std::string(name_of(config.mode)) + "\"");
  const bool named = keys.is_set(kSparse + "mode");
  keys.effects().record(
      kSparse + "mode", name_of(config.mode),
      named ? EffectStatus::honoured : EffectStatus::defaulted,
      "layouts are built for the run's sequence length; DeepSpeed cuts them from one of 2048 "
      "positions, and only models whose code asks for it use this section");
  if (const std::string conflict = sparse_conflict(config, causal); !conflict.empty()) {
    const std::size_t colon = conflict.find(": ");
    keys.effects().reject(conflict.substr(0, colon), conflict.substr(colon + 2));
  }
  return config.is_sparse() ? config : SparseAttentionConfig{};
}

void add_sparse_attention(const SparseAttentionConfig& config, Json& out) {
  if (!config.is_sparse()) return;
  const std::string_view taken = keys_of(config.mode);
  Json& section = out["sparse_attention"];
  section["mode"] = name_of(config.mode);
  fields::visit_sparse_attention(config, [&](const char* name, const auto& member) {
    if (lists(taken, name)) section[name] = member;
  });
  if (config.global_block_end_indices.empty()) section.erase("global_block_end_indices");
  section["attention"] = config.bidirectional ? "bidirectional" : "unidirectional";
  if (config.mode == SparseMode::layout) out["x-zerolab"]["block_layout"] = config.rows;
  if (config.seed != 0) out["x-zerolab"]["block_seed"] = config.seed;
}

}  // namespace zl
