#include "core/data/text/word_list.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace zl {
namespace {

using Json = nlohmann::json;

Json read_words(const std::string& path) {
  const std::string text = read_file(path);
  if (!is_utf8(text)) throw Error(ErrorCode::invalid, path + ": not UTF-8; a word a line is read");
  Json words = Json::object();
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (words.emplace(line, number).second) continue;
    throw Error(ErrorCode::invalid, path + " line " + std::to_string(number + 1) + ": \"" +
                                        shortened(line) + "\" is there twice; each token has one");
  }
  return words;
}

}  // namespace

JsonView word_list_spec(const std::string& path, const std::optional<JsonView>& names) {
  const Json words = read_words(path);
  Json added = Json::array();
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    const auto id = words.find(token);
    if (id != words.end()) {
      added.push_back({{"id", *id}, {"content", token}, {"special", true}});
    } else if (std::string_view(token) != "[PAD]" && std::string_view(token) != "[MASK]") {
      throw Error(ErrorCode::invalid, path + ": no token " + token + "; is it a BERT's vocab.txt?");
    }
  }
  const bool lower = !names || names->get("do_lower_case").flag_or(true);
  const Json spec = {{"added_tokens", added},
                     {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", lower}}},
                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                     {"post_processor",
                      {{"type", "BertProcessing"},
                       {"sep", {"[SEP]", words["[SEP]"]}},
                       {"cls", {"[CLS]", words["[CLS]"]}}}},
                     {"decoder", {{"type", "WordPiece"}}},
                     {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", words}}}};
  return JsonView::of_text(spec.dump(), path);
}

}  // namespace zl
