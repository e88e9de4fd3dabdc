#include "scenarios/files/gguf_tokenizer.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "scenarios/files/gguf_merges.h"

namespace zl {
namespace {

const std::string kPrefix = "tokenizer.ggml.";

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_level(bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", cuts}};
}

Json steps_in(const char* key, std::initializer_list<Json> steps) {
  Json list = Json::array();
  for (const Json& step : steps) list.push_back(step);
  return {{"type", "Sequence"}, {key, list}};
}

Json split_at(const char* pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

struct GgufSplit {
  Json pre_tokenizer;
  bool composes = false;        // NFC first
  bool ignores_merges = false;  // whole pieces first
  bool begins = false;          // with the token of the beginning, where the file does not say
};

GgufSplit split_named(const GgufFile& file, const std::string& name) {
  if (name == "gpt-2" || name == "gpt2") return {byte_level(true)};
  if (name == "smollm") {
    const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
    return {steps_in("pretokenizers", {digits, byte_level(true)})};
  }
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") {
    return {steps_in("pretokenizers", {split_at(kLlama3Pattern), byte_level(false)}), false, true,
            true};
  }
  if (name == "qwen2" || name == "deepseek-r1-qwen") {
    return {steps_in("pretokenizers", {split_at(kQwen2Pattern), byte_level(false)}), true};
  }
  file.refuse(kPrefix + "pre is \"" + shortened(name) +
              "\"; gpt-2, smollm, llama-bpe and qwen2 are read");
}

const std::string* token_of(const GgufFile& file, const GgufList& tokens, const std::string& key) {
  const auto id = file.integer(kPrefix + key);
  if (!id) return nullptr;
  if (*id < 0 || *id >= static_cast<std::int64_t>(tokens.texts.size())) {
    file.refuse(kPrefix + key + " is " + std::to_string(*id) + " of " +
                std::to_string(tokens.texts.size()) + " tokens");
  }
  return &tokens.texts[static_cast<std::size_t>(*id)];
}

const GgufList& tokens_of(const GgufFile& file) {
  const GgufList* tokens = file.list(kPrefix + "tokens");
  if (tokens == nullptr || tokens->texts.empty()) file.refuse(kPrefix + "tokens are missing");
  return *tokens;
}

Json added_tokens(const GgufList& tokens, const std::vector<GgufTokenKind>& kinds) {
  Json added = Json::array();
  for (std::size_t id = 0; id < kinds.size(); ++id) {
    const GgufTokenKind kind = kinds[id];
    const bool special = kind == GgufTokenKind::control || kind == GgufTokenKind::unknown;
    if (!special && kind != GgufTokenKind::user) continue;
    added.push_back({{"id", id},
                     {"content", tokens.texts[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  }
  return added;
}

// A beginning and an end around each text, as the file wants them.
Json post_processor(const GgufFile& file, const GgufList& tokens, bool usually_begins) {
  Json single = Json::array(), pair = Json::array(), special = Json::object();
  const auto put = [&](const char* flag, const char* key, bool usual, int type, Json& row) {
    if (!file.flag(kPrefix + flag).value_or(usual)) return;
    const std::string* text = token_of(file, tokens, key);
    if (text == nullptr) return;
    row.push_back({{"SpecialToken", {{"id", *text}, {"type_id", type}}}});
    special[*text] = {
        {"id", *text}, {"ids", {*file.integer(kPrefix + key)}}, {"tokens", Json::array({*text})}};
  };
  const auto put_text = [&](const char* name, int type, Json& row) {
    put("add_bos_token", "bos_token_id", usually_begins, type, row);
    row.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
    put("add_eos_token", "eos_token_id", false, type, row);
  };
  put_text("A", 0, single);
  put_text("A", 0, pair);
  put_text("B", 1, pair);
  if (special.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", special}};
}

Json bpe(const GgufList& tokens, Json merges) {
  Json vocab = Json::object();
  // The object keeps its order and would look through all it has for each name; they are unique.
  Json::object_t::Container& members = vocab.get_ref<Json::object_t&>();
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    members.emplace_back(tokens.texts[id], id);
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

void require_unique_texts(const GgufFile& file, const GgufList& tokens) {
  std::set<std::string_view> seen;
  for (const std::string& token : tokens.texts) {
    if (!is_utf8(token)) file.refuse(kPrefix + "tokens has one that is not UTF-8");
    if (!seen.insert(token).second) {
      file.refuse(kPrefix + "tokens has \"" + shortened(token) + "\" twice");
    }
  }
}

Json tokenizer_frame(const GgufFile& file, const GgufList& tokens, bool usually_begins) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens(tokens, gguf_token_kinds(file, tokens))},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", post_processor(file, tokens, usually_begins)},
          {"decoder", nullptr}};
}

Json byte_level_tokenizer(const GgufFile& file, const GgufList& tokens) {
  const GgufSplit split = split_named(file, file.text(kPrefix + "pre").value_or("gpt-2"));
  Json spec = tokenizer_frame(file, tokens, split.begins);
  if (split.composes) spec["normalizer"] = {{"type", "NFC"}};
  spec["pre_tokenizer"] = split.pre_tokenizer;
  spec["decoder"] = byte_level(true);
  spec["model"] = bpe(tokens, gguf_merges(file));
  spec["model"]["ignore_merges"] = split.ignores_merges;
  return spec;
}

Json sentencepiece_tokenizer(const GgufFile& file, const GgufList& tokens) {
  const bool prefix = file.flag(kPrefix + "add_space_prefix").value_or(true);
  const Json mark = {{"String", " "}};
  const Json replace = {{"type", "Replace"}, {"pattern", mark}, {"content", "\u2581"}};
  const Json prepend = {{"type", "Prepend"}, {"prepend", "\u2581"}};
  const Json back = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  const Json bytes = {{"type", "ByteFallback"}}, fuse = {{"type", "Fuse"}};
  const Json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  Json spec = tokenizer_frame(file, tokens, true);
  spec["normalizer"] = prefix ? steps_in("normalizers", {prepend, replace}) : replace;
  spec["decoder"] = prefix ? steps_in("decoders", {back, bytes, fuse, strip})
                           : steps_in("decoders", {back, bytes, fuse});
  spec["model"] = bpe(tokens, merges_by_score(file, tokens));
  spec["model"]["fuse_unk"] = true;
  spec["model"]["byte_fallback"] = true;
  if (const auto* unknown = token_of(file, tokens, "unknown_token_id")) {
    spec["model"]["unk_token"] = *unknown;
  }
  return spec;
}

}  // namespace

std::optional<Json> gguf_tokenizer(const GgufFile& file) {
  const auto kind = file.text(kPrefix + "model");
  if (!kind) return std::nullopt;
  if (*kind != "gpt2" && *kind != "llama") {
    file.refuse(kPrefix + "model is \"" + shortened(*kind) + "\"; gpt2 and llama are read");
  }
  const GgufList& tokens = tokens_of(file);
  require_unique_texts(file, tokens);
  return *kind == "gpt2" ? byte_level_tokenizer(file, tokens)
                         : sentencepiece_tokenizer(file, tokens);
}

Json gguf_tokenizer_config(const GgufFile& file) {
  const GgufList& tokens = tokens_of(file);
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  using Row = std::pair<const char*, const char*>;
  for (const auto& [name, key] : {Row{"bos_token", "bos_token_id"},
                                  {"eos_token", "eos_token_id"},
                                  {"pad_token", "padding_token_id"},
                                  {"unk_token", "unknown_token_id"}}) {
    const std::string* text = token_of(file, tokens, key);
    config[name] = text == nullptr ? Json(nullptr) : Json(*text);
  }
  if (const auto chat = file.text("tokenizer.chat_template")) {
    if (!is_utf8(*chat)) file.refuse("tokenizer.chat_template is not UTF-8");
    config["chat_template"] = *chat;
  }
  return config;
}

}  // namespace zl
