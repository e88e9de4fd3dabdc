#include "core/data/text/word_piece_model.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/data/text/bpe_model.h"
#include "core/data/text/utf8.h"

namespace zl {
namespace {

constexpr std::int64_t kUsualLongestWord = 100;

std::int64_t longest_word(const JsonView& limit) {
  return limit.is_null() ? kUsualLongestWord : limit.integer(1, INT32_MAX);
}

std::size_t characters_in(std::string_view text) {
  std::size_t count = 0;
  for_each_utf8(text, [&count](char32_t, std::string_view) { ++count; });
  return count;
}

}  // namespace

WordPieceModel::WordPieceModel(const JsonView& spec)
    : TokenModel(spec),
      prefix_(spec.get("continuing_subword_prefix").text_or("##")),
      longest_word_(static_cast<std::size_t>(longest_word(spec.get("max_input_chars_per_word")))) {
  const auto id = vocabulary().id_of(unknown());
  if (!id) spec.get("unk_token").refuse("\"" + shortened(unknown()) + "\" is not in the vocab");
  unknown_id_ = *id;
}

void WordPieceModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t begin_of_word = ids.size();
  const auto give_up = [&] {
    ids.resize(begin_of_word);
    ids.push_back(unknown_id_);
  };
  if (characters_in(word) > longest_word_) return give_up();
  std::string spelled;
  for (std::size_t begin = 0; begin < word.size();) {
    spelled = begin == 0 ? "" : prefix_;
    const std::size_t ahead = spelled.size();
    // No token is longer, so a long word costs no more than its length.
    spelled += word.substr(begin, vocabulary().longest());
    auto id = vocabulary().id_of(spelled);
    while (!id && spelled.size() > ahead) {
      spelled.resize(spelled.size() - utf8_last_size(std::string_view(spelled).substr(ahead)));
      if (spelled.size() > ahead) id = vocabulary().id_of(spelled);
    }
    if (!id || spelled.size() == ahead) return give_up();
    ids.push_back(*id);
    begin += spelled.size() - ahead;
  }
}

std::unique_ptr<const TokenModel> make_token_model(const JsonView& spec) {
  const JsonView type = spec.get("type");
  // Older files have no type.
  const std::string name = type.text_or(spec.get("merges").is_null() ? "WordPiece" : "BPE");
  if (name == "BPE") return std::make_unique<BpeModel>(spec);
  if (name == "WordPiece") return std::make_unique<WordPieceModel>(spec);
  type.refuse_choice({"BPE", "WordPiece"});
}

}  // namespace zl
