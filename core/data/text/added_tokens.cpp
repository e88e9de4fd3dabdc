#include "core/data/text/added_tokens.h"

#include <algorithm>

#include "core/data/text/class_runs.h"
#include "core/data/text/normalizer.h"
#include "core/data/text/unicode_text.h"
#include "core/data/text/utf8.h"
#include "core/data/text/vocabulary.h"

namespace zl {
namespace {

bool is_inside_word(std::string_view text, std::size_t begin, std::size_t end) {
  const std::size_t before = begin == 0 ? 0 : begin - utf8_last_size(text.substr(0, begin));
  return (begin > 0 && is_word_character(utf8_at(text, before).code)) ||
         (end < text.size() && is_word_character(utf8_at(text, end).code));
}

std::size_t spaces_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t size = utf8_last_size(text.substr(0, at));
    if (class_at(text, at - size).kind != CharClass::space) break;
    at -= size;
  }
  return at;
}

bool is_wanted(const AddedToken& token, AddedTokens which) {
  return which == AddedTokens::all || (which == AddedTokens::ordinary && !token.special);
}

}  // namespace

bool touches_any(const std::vector<TextRange>& ranges, std::size_t begin, std::size_t end) {
  return std::any_of(ranges.begin(), ranges.end(), [=](const TextRange& range) {
    return begin < range.end && range.begin < end;
  });
}

std::vector<AddedToken> read_added_tokens(const JsonView& list, std::int64_t vocab) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  const auto items = list.items();
  const std::int64_t most = vocab + static_cast<std::int64_t>(items.size()) + kMostIdGaps;
  for (const JsonView& item : items) {
    AddedToken token;
    token.id = static_cast<std::int32_t>(item.get("id").integer(0, most - 1));
    token.text = item.get("content").text();
    token.special = item.get("special").flag_or(false);
    token.normalized = item.get("normalized").flag_or(!token.special);
    token.left_strip = item.get("lstrip").flag_or(false);
    token.right_strip = item.get("rstrip").flag_or(false);
    token.single_word = item.get("single_word").flag_or(false);
    if (token.single_word) require_unicode_text(item.get("single_word"));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void AddedTokenFinder::add(const AddedToken& token) {
  if (token.text.empty()) return;
  std::size_t node = 0;
  for (const char c : token.text) {
    const auto [next, is_new] =
        nodes_[node].next.try_emplace(static_cast<unsigned char>(c), nodes_.size());
    node = next->second;
    if (is_new) nodes_.emplace_back();
  }
  nodes_[node].token = static_cast<std::int64_t>(tokens_.size());
  begins_[static_cast<unsigned char>(token.text[0])] = true;
  tokens_.push_back(token);
}

const AddedToken* AddedTokenFinder::longest_at(std::string_view text, std::size_t at) const {
  if (!begins_[static_cast<unsigned char>(text[at])]) return nullptr;
  const AddedToken* longest = nullptr;
  std::size_t node = 0;
  for (; at < text.size(); ++at) {
    const auto next = nodes_[node].next.find(static_cast<unsigned char>(text[at]));
    if (next == nodes_[node].next.end()) break;
    node = next->second;
    if (nodes_[node].token >= 0) longest = &tokens_[static_cast<std::size_t>(nodes_[node].token)];
  }
  return longest;
}

void AddedTokenFinder::split(std::string_view text, AddedTokens which,
                             const std::vector<TextRange>& protect,
                             const std::function<void(const Part&)>& take) const {
  std::size_t done = 0, at = 0;
  const bool any = which != AddedTokens::none && !tokens_.empty();
  while (any && at < text.size()) {
    const AddedToken* token = longest_at(text, at);
    std::size_t begin = at, end = at + (token == nullptr ? 1 : token->text.size());
    const bool counts = token != nullptr && !touches_any(protect, begin, end);
    at = counts ? end : at + 1;
    if (!counts || !is_wanted(*token, which)) continue;
    if (token->single_word && is_inside_word(text, begin, end)) continue;
    if (token->left_strip) begin = std::max(done, spaces_before(text, begin));
    if (token->right_strip) end = class_run_end(text, end, CharClass::space);
    if (begin > done) take({done, begin});
    take({begin, end, token->id});
    done = at = end;
  }
  if (done < text.size()) take({done, text.size()});
}

}  // namespace zl
