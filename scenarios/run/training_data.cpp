#include "scenarios/run/training_data.h"

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/run/corpus.h"

namespace zl {
namespace {

// Weights and archives train without a word and mean nothing.
void require_text_or_tokens(const std::string& path) {
  if (path.ends_with(".bin")) return;
  const InputFile file(path);
  std::string begin(std::min<std::int64_t>(file.size(), 4096), '\0');
  file.read(0, std::as_writable_bytes(std::span(begin)));
  const std::string kind = binary_kind(begin);
  if (kind.empty()) return;
  throw Error(ErrorCode::invalid, "run.data: " + path + ": this is " + kind +
                                      ", not a text; give one, or a .bin of 16-bit tokens");
}

}  // namespace

TokenSource open_data(const Scenario& scenario, const std::string& data) {
  const RunSettings& run = scenario.run;
  const std::int64_t vocab = scenario.model.vocab;
  if (data == "synthetic") return TokenSource::synthetic(vocab, run.seed);
  const std::string path = data == "bible" ? king_james_bible() : data;
  require_text_or_tokens(path);
  const auto tokenizer = load_tokenizer(run.tokenizer == "byte" ? "" : run.tokenizer);
  TokenSource source = TokenSource::open(path, *tokenizer, vocab, run.seed);
  source.require(run.sequence_length);
  return source;
}

double validation_loss(Engine& engine, const DataSource& data, std::int64_t sequence_length) {
  BatchRequest request{.rank = engine.context().rank(Axis::data),
                       .ranks = engine.context().ranks(Axis::data),
                       .micro_batch = engine.strategy().micro_batch,
                       .sequence_length = sequence_length};
  double sum = 0;
  for (; request.micro < kValidationBatches; ++request.micro) {
    sum += engine.evaluate(data.batch(request));
  }
  return sum / static_cast<double>(kValidationBatches);
}

}  // namespace zl
