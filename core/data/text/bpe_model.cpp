#include "core/data/text/bpe_model.h"

#include <cstdio>
#include <utility>

#include "core/base/text.h"
#include "core/data/text/utf8.h"

namespace zl {
namespace {

constexpr std::size_t kShortPiece =
    128;  // bytes; the search for a cut would cost more than it saves

std::uint64_t join_key(char32_t left, char32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | right;
}

char32_t last_character(std::string_view text) {
  return utf8_at(text, text.size() - utf8_last_size(text)).code;
}

// "a b" or ["a", "b"].
std::pair<std::string, std::string> sides_of(const JsonView& merge) {
  if (merge.is_array()) {
    const auto items = merge.items();
    if (items.size() != 2) merge.refuse("not two tokens");
    return {items[0].text(), items[1].text()};
  }
  const std::string text = merge.text();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    merge.refuse("\"" + shortened(text) + "\" is not two tokens");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

BpeModel::BpeModel(const JsonView& spec)
    : TokenModel(spec),
      prefix_(spec.get("continuing_subword_prefix").text_or("")),
      suffix_(spec.get("end_of_word_suffix").text_or("")),
      fuses_unknown_(spec.get("fuse_unk").flag_or(false)),
      byte_fallback_(spec.get("byte_fallback").flag_or(false)),
      ignores_merges_(spec.get("ignore_merges").flag_or(false)) {
  const JsonView dropout = spec.get("dropout");
  if (!dropout.is_null()) dropout.refuse("merges dropped at random are not known here; use null");
  if (!unknown().empty()) {
    const auto id = vocabulary().id_of(unknown());
    if (!id) spec.get("unk_token").refuse("\"" + shortened(unknown()) + "\" is not in the vocab");
    unknown_id_ = *id;
  }
  read_bytes();
  read_merges(spec.get("merges"));
}

void BpeModel::read_bytes() {
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    byte_ids_[byte] = vocabulary().id_of(name).value_or(-1);
  }
}

void BpeModel::read_merges(const JsonView& merges) {
  std::int32_t rank = 0;
  for (const JsonView& merge : merges.items()) {
    const auto [left, right] = sides_of(merge);
    const auto known = [&](const std::string& text) {
      const auto id = vocabulary().id_of(text);
      if (!id || text.empty()) {
        merge.refuse("\"" + shortened(text) + "\" is not in the vocab");
      }
      return *id;
    };
    const std::int32_t left_id = known(left), right_id = known(right);
    const std::string_view tail =
        right.starts_with(prefix_) ? std::string_view(right).substr(prefix_.size()) : right;
    merges_.add(left_id, right_id, rank++, known(left + std::string(tail)));
    joins_.insert(join_key(last_character(left), utf8_at(right, 0).code));
  }
}

std::size_t BpeModel::part_end(std::string_view piece, std::size_t begin) const {
  const bool whole = ignores_merges_ || !prefix_.empty() || !suffix_.empty();
  if (whole || piece.size() - begin <= kShortPiece) return piece.size();
  Utf8Character last = utf8_at(piece, begin);
  bool last_known = vocabulary().id_of(piece.substr(begin, last.size)).has_value();
  for (std::size_t at = begin + last.size; at < piece.size();) {
    const Utf8Character next = utf8_at(piece, at);
    const bool known = vocabulary().id_of(piece.substr(at, next.size)).has_value();
    // Unknown neighbours may become one token.
    if (last_known && known && !joins_.contains(join_key(last.code, next.code))) return at;
    last = next;
    last_known = known;
    at += next.size;
  }
  return piece.size();
}

bool BpeModel::falls_back(std::string_view symbol, std::vector<std::int32_t>& ids) const {
  if (!byte_fallback_) return false;
  for (const char c : symbol) {
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (const char c : symbol) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  return true;
}

std::vector<std::int32_t> BpeModel::symbols_of(std::string_view part) const {
  std::vector<std::int32_t> ids;
  bool last_unknown = false;
  std::size_t at = 0;
  for_each_utf8(part, [&](char32_t, std::string_view bytes) {
    const bool is_first = at == 0;
    at += bytes.size();
    std::string spelled;
    if (!prefix_.empty() || !suffix_.empty()) {
      spelled = (is_first ? "" : prefix_) + std::string(bytes) + (at < part.size() ? "" : suffix_);
    }
    const std::string_view symbol = spelled.empty() ? bytes : std::string_view(spelled);
    if (const auto id = vocabulary().id_of(symbol)) {
      ids.push_back(*id);
      last_unknown = false;
    } else if (falls_back(symbol, ids)) {
      last_unknown = false;
    } else {
      if (unknown_id_ >= 0 && !(last_unknown && fuses_unknown_)) ids.push_back(unknown_id_);
      last_unknown = true;
    }
  });
  return ids;
}

void BpeModel::encode(std::string_view part, std::vector<std::int32_t>& ids) const {
  if (ignores_merges_) {
    if (const auto id = vocabulary().id_of(part)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<std::int32_t> tokens = symbols_of(part);
  merges_.apply(tokens);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
}

}  // namespace zl
