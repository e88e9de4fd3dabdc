// Ids of Hugging Face's tokenizers, on texts that tests/parity/check_tokenizers.py makes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/data/tokenizer.h"

namespace zl {
namespace {

TEST(TokenizerParity, IdsAreTheSame) {
  const char* path = std::getenv("ZEROLAB_TOKENIZER_CASES");
  if (path == nullptr) GTEST_SKIP() << "tests/parity/check_tokenizers.py gives it its cases";
  std::ifstream in(path);
  const auto cases = nlohmann::json::parse(in);
  const auto tokenizer = load_tokenizer(cases["tokenizer"].get<std::string>());
  std::size_t different = 0;
  std::vector<std::vector<std::int32_t>> rows;
  const auto start = std::chrono::steady_clock::now();
  for (const auto& item : cases["cases"]) {
    rows.push_back(
        tokenizer->encode_input({.text = item["text"].get_ref<const std::string&>()}).ids);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == cases["cases"][i]["ids"].get<std::vector<std::int32_t>>()) continue;
    if (++different <= 5) ADD_FAILURE() << cases["cases"][i]["text"];
  }
  EXPECT_EQ(different, 0u);
  std::printf("parity: %zu texts in %.2f s\n", rows.size(), seconds.count());
}

}  // namespace
}  // namespace zl
