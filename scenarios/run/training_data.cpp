#include "scenarios/run/training_data.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/run/corpus.h"
#include "scenarios/weights/label_names.h"

namespace zl {
namespace {

// Weights and archives train without a word and mean nothing.
void require_text_or_tokens(const std::string& key, const std::string& path) {
  const InputFile file(path);
  std::string begin(std::min<std::int64_t>(file.size(), 4096), '\0');
  file.read(0, std::as_writable_bytes(std::span(begin)));
  require_no_pickle(begin, key + ": " + path);
  if (path.ends_with(".bin")) return;
  const std::string kind = binary_kind(begin);
  if (kind.empty()) return;
  throw Error(ErrorCode::invalid, key + ": " + path + ": this is " + kind +
                                      ", not a text; give one, or a .bin of 16-bit tokens");
}

std::unique_ptr<Tokenizer> tokenizer_of(const Scenario& scenario) {
  return load_tokenizer(scenario.run.tokenizer == "byte" ? "" : scenario.run.tokenizer);
}

std::string path_of(const std::string& data) { return data == "bible" ? king_james_bible() : data; }

// `data`: the value of `key`, which is not "synthetic".
TokenSource open_tokens_of(const Scenario& scenario, const std::string& key,
                           const std::string& data) {
  const std::string path = path_of(data);
  require_text_or_tokens(key, path);
  return TokenSource::open(path, *tokenizer_of(scenario), scenario.model.vocab, scenario.run.seed);
}

// Data of the key that a decoder cannot take.
void refuse_lines(const std::string& key, const std::string& data) {
  if (!is_text_lines(data)) return;
  throw Error(ErrorCode::invalid, key + ": " + data +
                                      ": JSON Lines are for encoders; give a text, or an encoder "
                                      "as the model");
}

// Tokens of a text in pieces as long as a row takes, with special tokens around each.
std::vector<EncodedText> pieces_of(const std::string& key, const std::string& path,
                                   const Tokenizer& tokenizer, std::int64_t length) {
  require_text_or_tokens(key, path);
  const std::vector<std::int32_t> tokens = tokenizer.encode(read_file(path));
  const SpecialIds special = tokenizer.special_ids();
  const std::int64_t around = (special.cls ? 1 : 0) + (special.sep ? 1 : 0);
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, length - around));
  std::vector<EncodedText> pieces;
  for (std::size_t first = 0; first < tokens.size(); first += size) {
    EncodedText& piece = pieces.emplace_back();
    if (special.cls) piece.ids.push_back(*special.cls);
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    piece.ids.insert(piece.ids.end(), begin,
                     begin + static_cast<std::ptrdiff_t>(std::min(size, tokens.size() - first)));
    if (special.sep) piece.ids.push_back(*special.sep);
    piece.types.assign(piece.ids.size(), 0);
  }
  return pieces;
}

std::vector<EncodedText> encoded(const TextLines& lines, const Tokenizer& tokenizer,
                                 std::int64_t length) {
  std::vector<EncodedText> texts;
  texts.reserve(lines.lines.size());
  for (const TextLine& line : lines.lines) {
    TextInput input{.text = line.text};
    if (line.pair) input.pair = *line.pair;
    texts.push_back(encode_text(tokenizer, input, length));
    texts.back().label = line.label;
  }
  return texts;
}

MaskSource::Tokens tokens_to_mask(const Tokenizer& tokenizer, std::int64_t vocab) {
  const SpecialIds ids = tokenizer.special_ids();
  if (!ids.mask) {
    throw Error(ErrorCode::invalid,
                "run.tokenizer: has no token that masks, such as [MASK]; give the one that the "
                "encoder was made for");
  }
  MaskSource::Tokens tokens{*ids.mask, {*ids.mask}, vocab};
  for (const auto& each : {ids.cls, ids.sep, ids.pad, ids.bos, ids.eos}) {
    if (each) tokens.special.push_back(*each);
  }
  return tokens;
}

// So many of them, evenly spread; 0: all.
template <class Each>
void keep_some(std::vector<Each>& all, std::int64_t most) {
  const auto size = std::ssize(all);
  if (most == 0 || most >= size) return;
  for (std::int64_t i = 1; i < most; ++i) {
    if (const std::int64_t from = i * size / most; from != i) all[i] = std::move(all[from]);
  }
  all.resize(static_cast<std::size_t>(most));
}

// `like`: the data that is trained on, whose labels this has too. most: texts; 0: all.
TrainingData open_texts(const Scenario& scenario, const std::string& key, const std::string& data,
                        const TrainingData* like, std::int64_t most) {
  const ModelConfig& model = scenario.model;
  const std::int64_t length = scenario.run.sequence_length;
  const auto tokenizer = tokenizer_of(scenario);
  const bool labels = model.head == HeadKind::label;
  if (labels && !is_text_lines(data)) {
    throw Error(ErrorCode::invalid,
                key + ": " + data +
                    ": labels of texts are in JSON Lines, a file that ends in .jsonl, or " +
                    kTestaments + "; give one, or --task mlm");
  }
  TrainingData opened;
  std::vector<EncodedText> texts;
  if (is_text_lines(data)) {
    LabelsWanted wanted{.any = labels, .most = model.labels};
    if (labels && !scenario.run.weights.empty()) {
      wanted.of_model = label_names(scenario.run.weights, model.labels);
    }
    if (labels && like != nullptr) wanted.like = like->lines.get();
    TextLines lines = read_text_lines(data, wanted);
    keep_some(lines.lines, most);
    opened.lines = std::make_shared<const TextLines>(std::move(lines));
    texts = encoded(*opened.lines, *tokenizer, length);
  } else {
    texts = pieces_of(key, path_of(data), *tokenizer, length);
    keep_some(texts, most);
  }
  for (const EncodedText& text : texts) {
    opened.tokens += static_cast<std::int64_t>(text.ids.size());
  }
  const std::int32_t pad = tokenizer->special_ids().pad.value_or(0);
  const auto all = std::make_shared<const EncodedTexts>(data, std::move(texts), pad, model.vocab);
  opened.texts = all->size();
  opened.fingerprint = all->fingerprint();
  if (labels) {
    opened.labelled = std::make_shared<const LabelSource>(all, model.labels, scenario.run.seed);
    opened.ordered = opened.labelled;
  } else {
    opened.ordered = std::make_shared<const MaskSource>(
        all, tokens_to_mask(*tokenizer, model.vocab), scenario.run.seed);
  }
  opened.source = opened.ordered;
  return opened;
}

// Every id is 0.
class BlankTokens : public DataSource {
 public:
  Batch batch(const BatchRequest& request) const override {
    const auto ids = static_cast<std::size_t>(request.micro_batch * request.sequence_length);
    return {std::vector<std::int32_t>(ids), std::vector<std::int32_t>(ids)};
  }
};

}  // namespace

std::unique_ptr<const DataSource> synthetic_data(const ModelConfig& model, std::uint64_t seed) {
  if (model.head == HeadKind::label) {
    return std::make_unique<const SyntheticLabels>(model.vocab, model.labels, seed);
  }
  return std::make_unique<const TokenSource>(TokenSource::synthetic(model.vocab, seed));
}

std::unique_ptr<const DataSource> data_to_record(const ModelConfig& model, std::uint64_t seed) {
  if (model.head != HeadKind::next_token) return synthetic_data(model, seed);
  return std::make_unique<const BlankTokens>();
}

TrainingData open_data(const Scenario& scenario) {
  const RunSettings& run = scenario.run;
  if (run.data == "synthetic") return {synthetic_data(scenario.model, run.seed), "synthetic"};
  if (scenario.model.encoder) return open_texts(scenario, "run.data", run.data, nullptr, 0);
  refuse_lines("run.data", run.data);
  const auto source =
      std::make_shared<const TokenSource>(open_tokens_of(scenario, "run.data", run.data));
  source->require(run.sequence_length);
  return {source, source->fingerprint(), source->tokens()};
}

EvaluationData open_evaluation(const Scenario& scenario, const TrainingData* trained) {
  const RunSettings& run = scenario.run;
  const bool held_out = run.eval_data.empty() && run.data == kTestaments;
  const std::string data = held_out ? kHeldOutTestaments : run.eval_data;
  if (data.empty()) return {};
  if (scenario.model.encoder) {
    EvaluationData opened{
        .texts = open_texts(scenario, "run.eval_data", data, trained, run.eval_samples)};
    opened.source = std::make_shared<const TextsInOrder>(opened.texts.ordered);
    opened.fingerprint = opened.texts.fingerprint;
    return opened;
  }
  refuse_lines("run.eval_data", data);
  const TokenSource tokens = open_tokens_of(scenario, "run.eval_data", data);
  const bool is_whole_text = run.eval_samples == 0 && !data.ends_with(".bin");
  return {tokens.windows(
              {.length = run.sequence_length, .stride = run.eval_stride, .most = run.eval_samples}),
          tokens.fingerprint(),
          is_whole_text ? InputFile(path_of(data)).size() : 0,
          {}};
}

LabelScores judge_labels(Engine& engine, const TrainingData& train, const TrainingData& test,
                         std::int64_t sequence_length) {
  const std::int64_t rows = engine.strategy().micro_batch;
  const std::int64_t ranks = engine.context().ranks(Axis::data);
  const std::size_t labels = train.lines->labels.size();
  ConfusionMatrix own(labels);
  double losses = 0;
  for (std::int64_t first = 0; first < test.texts; first += rows * ranks) {
    const Batch batch = test.labelled->in_order(first + engine.context().rank(Axis::data) * rows,
                                                rows, sequence_length);
    const auto logits = engine.label_logits(batch);
    for (std::size_t row = 0; row < logits.size(); ++row) {
      if (batch.targets[row] < 0) continue;
      const auto label = static_cast<std::size_t>(batch.targets[row]);
      const auto most = std::max_element(logits[row].begin(), logits[row].end());
      own.add(label, std::min(labels - 1, static_cast<std::size_t>(most - logits[row].begin())));
      double sum = 0;
      for (const float logit : logits[row]) sum += std::exp(static_cast<double>(logit - *most));
      losses += std::log(sum) - static_cast<double>(logits[row][label] - *most);
    }
  }
  std::vector<double> sums = own.counts();
  sums.push_back(losses);
  sums = engine.summed(sums);
  losses = sums.back();
  sums.pop_back();
  return label_scores(ConfusionMatrix(labels, std::move(sums)),
                      losses / static_cast<double>(test.texts), *train.lines, *test.lines);
}

}  // namespace zl
