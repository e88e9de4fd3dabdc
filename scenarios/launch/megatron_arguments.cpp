#include "scenarios/launch/megatron_arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "scenarios/launch/megatron_keys.h"
#include "scenarios/launch/shell_words.h"

namespace zl {
namespace {

// torchrun takes its own flags with underscores, too.
std::string flag_name(std::string name) {
  for (const char* own : {"--nproc_", "--node_", "--master_", "--rdzv_", "--max_"}) {
    if (name.starts_with(own)) std::ranges::replace(name, '_', '-');
  }
  return name;
}

// An array may hold "--flag value" in one pair of quotes: its expansion takes it apart.
std::vector<ShellWord> split_flags(const std::vector<ShellWord>& words) {
  std::vector<ShellWord> all;
  for (const ShellWord& word : words) {
    ShellWord part = word;
    std::size_t begin = 0;
    while (word.text.starts_with("--")) {
      const std::size_t space = word.text.find(' ', begin);
      if (space == std::string::npos) break;
      part.text = word.text.substr(begin, space - begin);
      part.is_end = false;
      if (!part.text.empty()) all.push_back(part);
      begin = space + 1;
    }
    part.text = word.text.substr(begin);
    part.is_end = word.is_end;
    all.push_back(part);
  }
  return all;
}

// What follows a flag up to the next one: nothing, a text or a list of texts.
std::vector<ForeignKey> arguments_of(const std::vector<ShellWord>& words) {
  std::vector<ForeignKey> keys;
  bool is_open = false;
  for (const ShellWord& word : words) {
    if (word.text.starts_with("--") && word.text.size() > 2) {
      const std::size_t equals = word.text.find('=');
      ForeignKey& key = keys.emplace_back();
      key.key = flag_name(word.text.substr(0, equals));
      key.line = word.line;
      key.value = equals == std::string::npos ? Json(true) : Json(word.text.substr(equals + 1));
      is_open = equals == std::string::npos;
    } else if (is_open && !word.text.ends_with(".py")) {
      Json& value = keys.back().value;
      if (value.is_array()) {
        value.push_back(word.text);
      } else if (value.is_boolean()) {
        value = word.text;
      } else {
        value = Json::array({value, word.text});
      }
    } else {
      is_open = false;
    }
    if (word.is_end) is_open = false;
  }
  return keys;
}

// Only values that the strategy is made of need to be known.
void require_known(const std::vector<ShellWord>& words, std::string_view source) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool is_value = words[i - 1].text.starts_with("--") && !words[i].text.starts_with("--");
    if (words[i].unset.empty() || !is_value) continue;
    const std::string key = flag_name(words[i - 1].text);
    if (!megatron_makes_strategy_of(key)) continue;
    throw Error(ErrorCode::invalid, std::string(source) + ":" + std::to_string(words[i].line) +
                                        ": " + key + ": its value is " + words[i].unset +
                                        ", which the script does not set; write the number");
  }
}

}  // namespace

std::vector<ForeignKey> megatron_arguments(std::string_view text, std::string_view source) {
  const std::vector<ShellWord> words = split_flags(shell_words(text, source));
  require_known(words, source);
  return arguments_of(words);
}

}  // namespace zl
