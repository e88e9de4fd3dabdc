#include "core/data/text/byte_spelling.h"

#include <array>

#include "core/data/text/utf8.h"

namespace zl {
namespace {

constexpr std::size_t kSpelled = 0x144;  // spellings lie below

struct SpellingTables {
  std::array<char32_t, 256> character_of{};
  std::array<int, kSpelled> byte_of{};  // -1: none
};

SpellingTables make_spelling() {
  SpellingTables tables;
  tables.byte_of.fill(-1);
  char32_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    const char32_t character = printable ? static_cast<char32_t>(byte) : next++;
    tables.character_of[byte] = character;
    tables.byte_of[character] = static_cast<int>(byte);
  }
  return tables;
}

const SpellingTables& spelling() {
  static const SpellingTables tables = make_spelling();
  return tables;
}

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelled;
  spelled.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    append_utf8(spelled, spelling().character_of[static_cast<unsigned char>(c)]);
  }
  return spelled;
}

std::optional<std::string> unspell_bytes(std::string_view spelled) {
  std::string bytes;
  bytes.reserve(spelled.size());
  bool all = true;
  for_each_utf8(spelled, [&](char32_t code, std::string_view) {
    const int byte = code < kSpelled ? spelling().byte_of[code] : -1;
    all = all && byte >= 0;
    bytes += static_cast<char>(byte);
  });
  return all ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace zl
