#include "scenarios/files/gguf_merges.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/text.h"

namespace zl {
namespace {

struct ScoredMerge {
  double score;
  std::size_t result, left, right;

  bool operator<(const ScoredMerge& other) const {
    if (score != other.score) return score > other.score;
    return std::pair(result, std::pair(left, right)) <
           std::pair(other.result, std::pair(other.left, other.right));
  }
};

using TokenTable = std::unordered_map<std::string_view, std::size_t>;

void add_splits(const TokenTable& known, std::string_view text, double score, std::size_t result,
                std::vector<ScoredMerge>& merges) {
  for (std::size_t at = utf8_length(text); at > 0 && at < text.size();) {
    const auto left = known.find(text.substr(0, at)), right = known.find(text.substr(at));
    if (left != known.end() && right != known.end()) {
      merges.push_back({score, result, left->second, right->second});
    }
    at += std::max<std::size_t>(utf8_length(text.substr(at)), 1);
  }
}

}  // namespace

std::vector<GgufTokenKind> gguf_token_kinds(const GgufFile& file, const GgufList& tokens) {
  const GgufList* types = file.list("tokenizer.ggml.token_type");
  std::vector<GgufTokenKind> kinds(tokens.texts.size(), GgufTokenKind::normal);
  if (types == nullptr) return kinds;
  if (types->numbers.size() != kinds.size()) {
    file.refuse("tokenizer.ggml.token_type has " + std::to_string(types->numbers.size()) +
                " entries for " + std::to_string(kinds.size()) + " tokens");
  }
  for (std::size_t id = 0; id < kinds.size(); ++id) {
    const double type = types->numbers[id];
    if (!(type >= 1 && type <= 6)) {
      file.refuse("tokenizer.ggml.token_type of token " + std::to_string(id) + " is not 1 to 6");
    }
    kinds[id] = static_cast<GgufTokenKind>(type);
  }
  return kinds;
}

Json gguf_merges(const GgufFile& file) {
  const GgufList* list = file.list("tokenizer.ggml.merges");
  if (list == nullptr) file.refuse("tokenizer.ggml.merges are missing");
  Json merges = Json::array();
  for (const std::string& merge : list->texts) {
    const std::size_t space = merge.find(' ');
    if (!is_utf8(merge) || space == std::string::npos ||
        merge.find(' ', space + 1) != std::string::npos) {
      file.refuse("tokenizer.ggml.merges has \"" + visible(shortened(merge)) +
                  "\", which is not two tokens");
    }
    merges.push_back(Json::array({merge.substr(0, space), merge.substr(space + 1)}));
  }
  return merges;
}

Json merges_by_score(const GgufFile& file, const GgufList& tokens) {
  const GgufList* scores = file.list("tokenizer.ggml.scores");
  if (scores == nullptr || scores->numbers.size() != tokens.texts.size()) {
    file.refuse("tokenizer.ggml.scores are not as many as the tokens");
  }
  const std::vector<GgufTokenKind> kinds = gguf_token_kinds(file, tokens);
  TokenTable known;
  for (std::size_t id = 0; id < kinds.size(); ++id) {
    if (!(scores->numbers[id] == scores->numbers[id])) {
      file.refuse("tokenizer.ggml.scores has a NaN at " + std::to_string(id));
    }
    if (kinds[id] == GgufTokenKind::normal) known.emplace(tokens.texts[id], id);
  }
  std::vector<ScoredMerge> merges;
  for (std::size_t id = 0; id < kinds.size(); ++id) {
    if (kinds[id] != GgufTokenKind::normal) continue;
    add_splits(known, tokens.texts[id], scores->numbers[id], id, merges);
  }
  std::sort(merges.begin(), merges.end());
  Json list = Json::array();
  for (const ScoredMerge& merge : merges) {
    list.push_back(Json::array({tokens.texts[merge.left], tokens.texts[merge.right]}));
  }
  return list;
}

}  // namespace zl
