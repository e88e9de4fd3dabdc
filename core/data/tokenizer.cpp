#include "core/data/tokenizer.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_limits.h"
#include "core/base/text.h"
#include "core/data/gpt2_split.h"

namespace zl {
namespace {

constexpr std::int32_t kMerged = -1;

[[noreturn]] void invalid(const std::string& where, const std::string& defect) {
  throw Error(ErrorCode::invalid, where + ": " + defect);
}

void check_tokens(std::span<const std::int32_t> tokens, std::int64_t vocab) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    invalid("decode", "token " + std::to_string(i) + " has id " + std::to_string(tokens[i]) +
                          ", beyond the vocabulary of " + std::to_string(vocab));
  }
}

// vocab.json and merges.txt spell each byte as one printable character: printable Latin-1 bytes as
// themselves, the others, in order, as U+0100, U+0101, ... This is the inverse, by code point.
std::unordered_map<char32_t, char> byte_of_character() {
  std::unordered_map<char32_t, char> table;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    table[printable ? byte : next++] = static_cast<char>(byte);
  }
  return table;
}

// The bytes a spelled token stands for; nothing when a character spells no byte. Spellings lie
// below U+0144, so one or two bytes of UTF-8 per character are all there can be.
std::optional<std::string> unspell(std::string_view spelled) {
  static const auto table = byte_of_character();
  std::string bytes;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    auto code_point = static_cast<char32_t>(static_cast<unsigned char>(spelled[i]));
    if (code_point >= 0x80) {
      if (code_point < 0xc0 || code_point >= 0xe0 || i + 1 == spelled.size()) return std::nullopt;
      const auto low = static_cast<unsigned char>(spelled[++i]);
      code_point = ((code_point & 0x1fu) << 6) | (low & 0x3fu);
    }
    const auto found = table.find(code_point);
    if (found == table.end()) return std::nullopt;
    bytes += found->second;
  }
  return bytes;
}

// A pair that may be merged, stale once either side has changed; the best-ranked comes first.
struct Candidate {
  std::int32_t rank;
  std::int32_t merged;
  std::size_t left;
  std::uint64_t pair;

  bool operator>(const Candidate& other) const {
    return std::pair(rank, left) > std::pair(other.rank, other.left);
  }
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
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

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  check_tokens(tokens, vocab());
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
    const auto bytes = unspell(spelled);
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
    const auto left = unspell(std::string_view(line).substr(0, space));
    const auto right = unspell(std::string_view(line).substr(space + 1));
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
    merges_.try_emplace(pair_key(known(*left), known(*right)),
                        Merge{rank++, known(*left + *right)});
  }
}

// Merges the best-ranked pair, the leftmost among equals, until no pair can be merged. The heap
// keeps a piece of n bytes at O(n log n): real texts hold words of 100 kB (base64, DNA).
std::vector<std::int32_t> Gpt2Tokenizer::encode_piece(std::string_view piece) const {
  const std::size_t size = piece.size();
  std::vector<std::int32_t> tokens(size);  // kMerged once it belongs to the token on its left
  std::vector<std::size_t> next(size), previous(size);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto propose = [&](std::size_t left) {
    if (next[left] == size) return;
    const std::uint64_t pair = pair_key(tokens[left], tokens[next[left]]);
    if (const auto found = merges_.find(pair); found != merges_.end()) {
      candidates.push({found->second.rank, found->second.merged, left, pair});
    }
  };
  for (std::size_t i = 0; i < size; ++i) {
    tokens[i] = byte_id_[static_cast<unsigned char>(piece[i])];
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  for (std::size_t i = 0; i < size; ++i) propose(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    const std::size_t left = best.left;
    const std::size_t right = next[left];
    const bool stale = tokens[left] == kMerged || right == size ||
                       pair_key(tokens[left], tokens[right]) != best.pair;
    if (stale) continue;
    tokens[left] = best.merged;
    tokens[right] = kMerged;
    next[left] = next[right];
    if (next[left] < size) previous[next[left]] = left;
    propose(left);
    if (left > 0) propose(previous[left]);
  }
  std::erase(tokens, kMerged);
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
  check_tokens(tokens, vocab());
  std::string text;
  for (const std::int32_t token : tokens) text += text_of_[token];
  return text;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder) {
  if (folder.empty()) return std::make_unique<ByteTokenizer>();
  return std::make_unique<Gpt2Tokenizer>(folder);
}

}  // namespace zl
