#include "core/data/text/staged_tokenizer.h"

#include <algorithm>
#include <utility>

namespace zl {
namespace {

constexpr std::size_t kLongestCached = 256;  // bytes of a piece

std::vector<TextRange> ranges_within(const std::vector<TextRange>& ranges, std::size_t size) {
  std::vector<TextRange> within = ranges;
  for (TextRange& range : within) range.end = std::min(range.end, size);
  return within;
}

}  // namespace

// One call of encode. Words repeat: each distinct piece is turned into tokens once, which is what
// makes large texts fast.
class StagedTokenizer::Encoder {
 public:
  explicit Encoder(const StagedTokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add_stretch(std::string_view text, bool first, AddedTokens added) {
    const std::string normal = tokenizer_.normalizer_->apply(std::string(text));
    tokenizer_.normalized_added_.split(normal, added, {}, [&](const AddedTokenFinder::Part& part) {
      if (part.id >= 0) return add_token(part.id);
      const std::string_view piece =
          std::string_view(normal).substr(part.begin, part.end - part.begin);
      tokenizer_.pre_tokenizer_->split({piece, first && part.begin == 0},
                                       [this](const TextPiece& cut) { add_piece(cut.text); });
    });
  }

  void add_token(std::int32_t id) { ids_.push_back(id); }

  std::vector<std::int32_t> take_ids() { return std::move(ids_); }

 private:
  void add_piece(std::string_view piece) {
    for (std::size_t begin = 0; begin < piece.size();) {
      const std::size_t end = tokenizer_.model_->part_end(piece, begin);
      add_part(piece.substr(begin, end - begin));
      begin = end;
    }
  }

  void add_part(std::string_view part) {
    if (part.size() > kLongestCached) return tokenizer_.model_->encode(part, ids_);
    const auto [entry, is_new] = seen_.try_emplace(std::string(part));
    if (is_new) tokenizer_.model_->encode(part, entry->second);
    ids_.insert(ids_.end(), entry->second.begin(), entry->second.end());
  }

  const StagedTokenizer& tokenizer_;
  std::unordered_map<std::string, std::vector<std::int32_t>> seen_;
  std::vector<std::int32_t> ids_;
};

StagedTokenizer::StagedTokenizer(const JsonView& spec, const std::optional<JsonView>& names)
    : normalizer_(make_normalizer(spec.get("normalizer"))),
      pre_tokenizer_(make_pre_tokenizer(spec.get("pre_tokenizer"))),
      model_(make_token_model(spec.get("model"))),
      decoder_(make_token_decoder(spec.get("decoder"))),
      vocab_(model_->vocabulary().size()) {
  read_added(spec.get("added_tokens"));
  post_processor_ = make_post_processor(spec.get("post_processor"), vocab_);
  read_names(names);
}

void StagedTokenizer::read_added(const JsonView& list) {
  for (AddedToken& token : read_added_tokens(list, vocab_)) {
    vocab_ = std::max(vocab_, static_cast<std::int64_t>(token.id) + 1);
    added_ids_[token.text] = token.id;
    added_[token.id] = token;
    if (!token.normalized) {
      raw_added_.add(token);
    } else {
      token.text = normalizer_->apply(std::move(token.text));
      normalized_added_.add(token);
    }
  }
}

std::optional<std::int32_t> StagedTokenizer::named(const std::optional<JsonView>& names,
                                                   const char* key,
                                                   const std::string& usual) const {
  if (!names) return usual.empty() ? std::nullopt : id_of(usual);
  JsonView name = names->get(key);
  if (name.is_object()) name = name.get("content");
  if (name.is_null()) return usual.empty() ? std::nullopt : id_of(usual);
  return id_of(name.text());
}

void StagedTokenizer::read_names(const std::optional<JsonView>& names) {
  special_ = {.bos = named(names, "bos_token", ""),
              .eos = named(names, "eos_token", ""),
              .pad = named(names, "pad_token", "[PAD]"),
              .unk = named(names, "unk_token", model_->unknown()),
              .cls = named(names, "cls_token", "[CLS]"),
              .sep = named(names, "sep_token", "[SEP]"),
              .mask = named(names, "mask_token", "[MASK]")};
}

bool StagedTokenizer::is_special(std::int32_t id) const {
  const auto found = added_.find(id);
  return found != added_.end() && found->second.special;
}

std::optional<std::int32_t> StagedTokenizer::id_of(std::string_view token) const {
  const auto found = added_ids_.find(std::string(token));
  if (found != added_ids_.end()) return found->second;
  return model_->vocabulary().id_of(token);
}

TokenizedInput StagedTokenizer::encode_one(std::string_view text, AddedTokens added,
                                           const std::vector<TextRange>& content,
                                           std::int32_t type) const {
  Encoder encoder(*this);
  raw_added_.split(text, added, content, [&](const AddedTokenFinder::Part& part) {
    if (part.id >= 0) return encoder.add_token(part.id);
    const bool guarded = touches_any(content, part.begin, part.end);
    encoder.add_stretch(text.substr(part.begin, part.end - part.begin), part.begin == 0,
                        guarded ? AddedTokens::none : added);
  });
  TokenizedInput out{encoder.take_ids(), {}};
  out.types.resize(out.ids.size(), type);
  return out;
}

std::vector<std::int32_t> StagedTokenizer::encode(std::string_view text) const {
  return encode_one(text, AddedTokens::ordinary, {}, 0).ids;
}

TokenizedInput StagedTokenizer::encode_input(const TextInput& input) const {
  const auto content = ranges_within(input.content, input.text.size());
  TokenizedInput first = encode_one(input.text, input.added, content, 0);
  std::optional<TokenizedInput> second;
  if (input.pair) second = encode_one(*input.pair, input.added, {}, 1);
  if (input.special_tokens) {
    return post_processor_->join(std::move(first), second ? &*second : nullptr);
  }
  if (second) {
    first.ids.insert(first.ids.end(), second->ids.begin(), second->ids.end());
    first.types.insert(first.types.end(), second->types.begin(), second->types.end());
  }
  return first;
}

std::string StagedTokenizer::decode(std::span<const std::int32_t> tokens) const {
  require_tokens(tokens, vocab_);
  std::vector<DecodedToken> texts;
  texts.reserve(tokens.size());
  for (const std::int32_t id : tokens) {
    const auto added = added_.find(id);
    const std::string* text = model_->vocabulary().text_of(id);
    if (added != added_.end()) {
      texts.push_back({added->second.text, true});
    } else if (text != nullptr) {
      texts.push_back({*text, false});
    }
  }
  decoder_->apply(texts);
  std::string out;
  for (const DecodedToken& token : texts) out += token.text;
  return out;
}

}  // namespace zl
