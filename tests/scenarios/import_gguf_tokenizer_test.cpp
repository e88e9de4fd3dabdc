// Tokenizers of GGUF files: what is written gives the golden ids.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/text/unicode_text.h"
#include "core/data/tokenizer.h"
#include "scenarios/files/import_gguf.h"
#include "tests/scenarios/gguf_writer.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

using Golden = nlohmann::ordered_json;

Golden golden_tokenizer(const std::string& name) {
  std::ifstream in(ZL_SOURCE_DIR "/tests/golden/models/tokenizers/" + name);
  return Golden::parse(in);
}

class GgufTokenizer : public testing::Test {
 protected:
  void import_model(const test::GgufWriter& file) const {
    file.save(path_);
    import_gguf(path_, (folder_ / "out").string(), DType::f32, true);
  }

  test::TempFolder folder_;
  const std::string path_ = (folder_ / "x.gguf").string();
};

// A vocabulary of SentencePiece, whose merges are found from the scores.
TEST_F(GgufTokenizer, ATokenizerOfScores) {
  const Golden spec = golden_tokenizer("sentencepiece.json");
  std::vector<std::string> tokens(spec["model"]["vocab"].size());
  std::vector<std::int32_t> kinds(tokens.size(), 1);
  std::vector<float> scores(tokens.size(), 0);
  for (const auto& [text, id] : spec["model"]["vocab"].items()) {
    const auto at = id.get<std::size_t>();
    tokens[at] = text;
    kinds[at] = at == 0 ? 2 : at < 3 ? 3 : at < 259 ? 6 : 1;
    scores[at] = -static_cast<float>(at);
  }
  test::GgufWriter file = test::tiny_gguf("llama");
  file.text("tokenizer.ggml.model", "llama");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.numbers("tokenizer.ggml.scores", scores);
  file.integers("tokenizer.ggml.token_type", kinds);
  file.integer("tokenizer.ggml.bos_token_id", 1);
  file.integer("tokenizer.ggml.eos_token_id", 2);
  file.integer("tokenizer.ggml.unknown_token_id", 0);
  import_model(file);
  const auto tokenizer = load_tokenizer((folder_ / "out").string());
  const Golden golden = golden_tokenizer("sentencepiece_ids.json");
  for (std::size_t i = 0; i < golden["strings"].size(); ++i) {
    std::vector<std::int32_t> wanted = golden["ids"][i];
    EXPECT_EQ(tokenizer->encode(golden["strings"][i].get<std::string>()), wanted);
    wanted.insert(wanted.begin(), 1);
    EXPECT_EQ(tokenizer->encode_input({.text = golden["strings"][i].get<std::string>()}).ids,
              wanted);
  }
  EXPECT_EQ(tokenizer->special_ids().eos, 2);
}

TEST_F(GgufTokenizer, ATokenizerOfMerges) {
  if (!has_unicode_text()) GTEST_SKIP() << "this build has no utf8proc";
  const Golden spec = golden_tokenizer("gpt2.json");
  std::map<std::int64_t, std::string> by_id;
  for (const auto& [text, id] : spec["model"]["vocab"].items()) by_id[id] = text;
  std::vector<std::string> tokens, merges;
  for (const auto& [id, text] : by_id) tokens.push_back(text);
  for (const Golden& merge : spec["model"]["merges"]) {
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  test::GgufWriter file = test::tiny_gguf("llama");
  file.text("tokenizer.ggml.model", "gpt2");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.texts("tokenizer.ggml.merges", merges);
  const Golden golden = golden_tokenizer("splits.json");
  using Row = std::pair<const char*, const char*>;
  for (const auto& [pre, name] :
       {Row{"gpt-2", "gpt2"}, {"llama-bpe", "llama3"}, {"qwen2", "qwen2"}}) {
    file.text("tokenizer.ggml.pre", pre);
    import_model(file);
    const auto tokenizer = load_tokenizer((folder_ / "out").string());
    for (std::size_t i = 0; i < golden["strings"].size(); ++i) {
      const std::string text = golden["strings"][i];
      // Pieces have no token in common, so a text has those of its pieces.
      std::vector<std::int32_t> wanted;
      for (const std::string piece : golden["splits"][name]["pieces"][i]) {
        const auto ids = tokenizer->encode(piece);
        wanted.insert(wanted.end(), ids.begin(), ids.end());
      }
      const bool composed = std::string(pre) == "qwen2";  // and so texts lose what they are
      if (composed && tokenizer->decode(tokenizer->encode(text)) != text) continue;
      EXPECT_EQ(tokenizer->decode(wanted), text);
      EXPECT_EQ(tokenizer->encode(text), wanted) << pre << ": " << text;
    }
  }
  file.text("tokenizer.ggml.pre", "unheard-of");
  try {
    import_model(file);
    FAIL();
  } catch (const Error& error) {
    const std::string wanted = path_ + ": tokenizer.ggml.pre is \"unheard-of\"; gpt-2, smollm";
    EXPECT_TRUE(std::string(error.what()).starts_with(wanted)) << error.what();
  }
}

}  // namespace
}  // namespace zl
