#include "scenarios/files/attention_layout.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/deepspeed/sparse_attention.h"
#include "scenarios/files/model_folder.h"

namespace zl {
namespace {

constexpr const char* kLayoutKey = "zerolab";

}  // namespace

void set_attention_layout(const SparseAttentionConfig& sparse, Json& config) {
  config.erase(kLayoutKey);
  if (sparse.is_sparse()) add_sparse_attention(sparse, config[kLayoutKey]);
}

SparseAttentionConfig attention_layout(const std::string& folder, const ModelConfig& model) {
  const std::string path = path_in(folder, "config.json");
  if (folder.empty() || !is_file(path)) return {};
  const Json config = parse_json(read_file(path), path);
  const auto section = config.is_object() ? config.find(kLayoutKey) : config.end();
  if (!config.is_object() || section == config.end()) return {};
  return import_deepspeed(to_text(*section), path + ": " + kLayoutKey, {.model = &model})
      .strategy.sparse_attention;
}

std::string other_layout(const SparseAttentionConfig& own, const SparseAttentionConfig& trained) {
  if (!trained.is_sparse() || own == trained) return "";
  Json section = Json::object();
  add_sparse_attention(trained, section);
  return "the weights were trained with other attention, that of " + to_text(section) +
         "; with these keys the strategy goes on with it";
}

}  // namespace zl
