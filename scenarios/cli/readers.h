// Generated text for people, as it comes.
// Ownership: refers to the prompts and the tokenizer, which outlive it. Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/text_stream.h"

namespace zl::cli {

class Readers {
 public:
  // `streams`: one prompt and what follows it are printed at once; several wait for finish().
  Readers(const Tokenizer& tokenizer, const std::vector<std::string>& prompts, bool streams);

  void take(int sequence, std::int32_t token);
  // What each sequence has said. `prints`: those that were not printed yet, each behind its prompt.
  std::vector<std::string> finish(bool prints);

 private:
  const std::vector<std::string>& prompts_;
  bool streams_;
  std::vector<TextStream> texts_;
  std::vector<std::string> said_;
};

}  // namespace zl::cli
