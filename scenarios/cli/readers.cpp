#include "scenarios/cli/readers.h"

#include <cstdio>

#include "scenarios/cli/output.h"

namespace zl::cli {
namespace {

void show(const std::string& text) {
  print(text);
  std::fflush(stdout);
}

}  // namespace

Readers::Readers(const Tokenizer& tokenizer, const std::vector<std::string>& prompts, bool streams)
    : prompts_(prompts), streams_(streams && prompts.size() == 1), said_(prompts.size()) {
  for (std::size_t i = 0; i < prompts.size(); ++i) texts_.emplace_back(tokenizer);
  if (streams_) show(prompts.front());
}

void Readers::take(int sequence, std::int32_t token) {
  const auto index = static_cast<std::size_t>(sequence);
  const std::string text = texts_[index].push(token);
  said_[index] += text;
  if (streams_) show(text);
}

std::vector<std::string> Readers::finish(bool prints) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const std::string rest = texts_[i].finish();
    said_[i] += rest;
    if (streams_) show(rest + "\n");
    if (prints && !streams_) print(prompts_[i] + said_[i] + "\n\n");
  }
  return said_;
}

}  // namespace zl::cli
