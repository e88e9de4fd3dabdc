#include "core/data/tokenizer.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_limits.h"
#include "core/base/text.h"
#include "core/data/gpt2_split.h"
#include "core/data/text/byte_spelling.h"

namespace zl {
namespace {

[[noreturn]] void invalid(const std::string& where, const std::string& defect) {
  throw Error(ErrorCode::invalid, where + ": " + defect);
}

nlohmann::json parse_vocab(const std::string& path) {
  try {
    const std::string text = read_file(path);
    require_shallow_json(text, path);
    nlohmann::json vocab = nlohmann::json::parse(text);
    if (vocab.is_object()) return vocab;
  } catch (const nlohmann::json::exception& error) {
    invalid(path, "not valid JSON: " + json_problem(error.what()));
  }
  invalid(path, "not a JSON object of token to id");
}

}  // namespace

void require_tokens(std::span<const std::int32_t> tokens, std::int64_t vocab) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    invalid("decode", "token " + std::to_string(i) + " has id " + std::to_string(tokens[i]) +
                          ", beyond the vocabulary of " + std::to_string(vocab));
  }
}

TokenizedInput Tokenizer::encode_input(const TextInput& input) const {
  TokenizedInput out{encode(input.text), {}};
  out.types.resize(out.ids.size(), 0);
  if (input.pair) {
    const std::vector<std::int32_t> second = encode(*input.pair);
    out.ids.insert(out.ids.end(), second.begin(), second.end());
    out.types.resize(out.ids.size(), 1);
  }
  return out;
}

std::string Tokenizer::decode_readable(std::span<const std::int32_t> tokens) const {
  std::vector<std::int32_t> kept;
  for (const std::int32_t token : tokens) {
    if (!is_special(token)) kept.push_back(token);
  }
  return decode(kept);
}

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  require_tokens(tokens, vocab());
  std::string text;
  for (const std::int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

Gpt2Tokenizer::Gpt2Tokenizer(const std::string& folder) {
  read_vocab(folder + "/vocab.json");
  read_merges(folder + "/merges.txt");
}

void Gpt2Tokenizer::read_vocab(const std::string& path) {
  const nlohmann::json vocab = parse_vocab(path);
  text_of_.resize(vocab.size());
  for (const auto& [spelled, id] : vocab.items()) {
    const auto bytes = unspell_bytes(spelled);
    if (!bytes || bytes->empty()) {
      invalid(path, "token \"" + shortened(spelled) + "\" is not in GPT-2's byte spelling");
    }
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab.size() ||
        !text_of_[id.get<std::size_t>()].empty()) {
      invalid(path, "token \"" + shortened(spelled) + "\" has id " + shortened(id.dump()) +
                        "; ids must be 0.." + std::to_string(vocab.size() - 1) + ", each once");
    }
    text_of_[id.get<std::size_t>()] = *bytes;
    id_of_[*bytes] = id.get<std::int32_t>();
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = id_of_.find(std::string(1, static_cast<char>(byte)));
    if (found == id_of_.end()) invalid(path, "no token for byte " + std::to_string(byte));
    byte_id_[byte] = found->second;
  }
}

void Gpt2Tokenizer::read_merges(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::int32_t rank = 0;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    // Only the first line may be a comment: "# #" is a merge.
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::string where = path + " line " + std::to_string(number);
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
      invalid(where, "\"" + shortened(line) + "\" is not two tokens");
    }
    const auto left = unspell_bytes(std::string_view(line).substr(0, space));
    const auto right = unspell_bytes(std::string_view(line).substr(space + 1));
    const auto known = [&](const std::string& bytes) {
      const auto found = id_of_.find(bytes);
      if (found == id_of_.end()) {
        invalid(where, "\"" + shortened(line) + "\" uses a token that vocab.json lacks");
      }
      return found->second;
    };
    if (!left || !right) {
      invalid(where, "\"" + shortened(line) + "\" is not in GPT-2's byte spelling");
    }
    const std::int32_t merged = known(*left + *right);
    merges_.add(known(*left), known(*right), rank++, merged);
  }
}

std::vector<std::int32_t> Gpt2Tokenizer::encode_piece(std::string_view piece) const {
  std::vector<std::int32_t> tokens(piece.size());
  for (std::size_t i = 0; i < piece.size(); ++i) {
    tokens[i] = byte_id_[static_cast<unsigned char>(piece[i])];
  }
  merges_.apply(tokens);
  return tokens;
}

std::vector<std::int32_t> Gpt2Tokenizer::encode(std::string_view text) const {
  // Words repeat: merging each distinct piece once is what makes large texts fast.
  std::unordered_map<std::string_view, std::vector<std::int32_t>> seen;
  std::vector<std::int32_t> tokens;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = gpt2_piece_end(text, begin);
    const std::string_view piece = text.substr(begin, end - begin);
    const auto [entry, is_new] = seen.try_emplace(piece);
    if (is_new) entry->second = encode_piece(piece);
    tokens.insert(tokens.end(), entry->second.begin(), entry->second.end());
    begin = end;
  }
  return tokens;
}

std::string Gpt2Tokenizer::decode(std::span<const std::int32_t> tokens) const {
  require_tokens(tokens, vocab());
  std::string text;
  for (const std::int32_t token : tokens) text += text_of_[token];
  return text;
}

std::optional<std::int32_t> Gpt2Tokenizer::id_of(std::string_view token) const {
  const auto found = id_of_.find(std::string(token));
  return found == id_of_.end() ? std::nullopt : std::optional(found->second);
}

SpecialIds Gpt2Tokenizer::special_ids() const {
  const auto end = id_of("<|endoftext|>");
  return {.bos = end, .eos = end};
}

}  // namespace zl
