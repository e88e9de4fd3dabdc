#include "scenarios/published/run_shape.h"

#include <cctype>
#include <sstream>

#include "core/base/text.h"

namespace zl {
namespace {

// Of "layers/vstage=2" or a number of chunks.
std::int64_t chunks_of(const CsvRow& row, const RunShape& shape) {
  const std::string& text = row.at("vpp");
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return whole(row, "vpp", 1);
  const std::int64_t layers = integer_in(text.substr(equals + 1)).value_or(0);
  if (layers < 1 || layers > shape.layers || shape.layers % (shape.pipeline * layers) != 0) {
    throw Inexpressible{"stages of unequal numbers of layers"};
  }
  return shape.layers / (shape.pipeline * layers);
}

// Of "2 3 3 2".
std::vector<std::int64_t> layers_per_stage_of(const CsvRow& row) {
  std::vector<std::int64_t> counts;
  std::istringstream words(row.at("layers_per_stage"));
  for (std::string word; words >> word;) {
    const auto count = integer_in(word);
    if (!count) throw Inexpressible{"layers_per_stage is no list of whole numbers"};
    if (*count < 0) throw Inexpressible{"a stage of fewer than no layers"};
    counts.push_back(*count);
  }
  return counts;
}

}  // namespace

std::int64_t whole(const CsvRow& row, const char* column, std::int64_t fallback) {
  constexpr std::int64_t kMost = 1'000'000'000;  // of which products of two are numbers
  const std::string& text = row.at(column);
  if (text.empty()) return fallback;
  const auto value = integer_in(text);
  if (!value || *value < 0 || *value > kMost) {
    throw Inexpressible{std::string(column) + " is no whole number up to a billion"};
  }
  return *value == 0 ? fallback : *value;
}

std::int64_t stated(const CsvRow& row, const char* column) {
  const std::int64_t value = whole(row, column, 0);
  if (value < 1) throw Inexpressible{std::string(column) + " is not stated"};
  return value;
}

bool is_llama(const CsvRow& row) {
  std::string name = row.at("model");
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return contains(name, "llama") || contains(name, "mistral") || contains(name, "qwen");
}

RunShape shape_of(const PublishedRun& run) {
  const CsvRow& row = run.row;
  RunShape shape;
  shape.layers = stated(row, "layers");
  shape.hidden = stated(row, "hidden");
  shape.sequence = stated(row, "seq");
  shape.micro_batch = stated(row, "micro_batch");
  shape.vocab = whole(row, "vocab", is_llama(row) ? 128256 : 51200);
  shape.tensor = whole(row, "tp", 1);
  shape.pipeline = whole(row, "pp", 1);
  // A test of one node says its parallel sizes only.
  const bool one_node = row.at("n_gpus").empty() && !row.at("gpus_per_node").empty() &&
                        !row.at("global_batch").empty();
  shape.ranks = one_node ? stated(row, "gpus_per_node") : stated(row, "n_gpus");
  const std::int64_t model = shape.tensor * shape.pipeline;
  if (shape.ranks % model != 0) throw Inexpressible{"ranks that do not fill the mesh"};
  shape.data = shape.ranks / model;
  if (whole(row, "dp", shape.data) != shape.data)
    throw Inexpressible{"ranks that do not fill the mesh"};
  shape.layers_per_stage = layers_per_stage_of(row);
  shape.chunks = chunks_of(row, shape);
  const std::int64_t batch = whole(row, "global_batch", shape.data * shape.micro_batch);
  if (batch % (shape.data * shape.micro_batch) != 0) {
    throw Inexpressible{"a global batch that micro-batches do not fill"};
  }
  shape.accumulation = batch / (shape.data * shape.micro_batch);
  if (shape.pipeline == 1) shape.chunks = 1;
  if (shape.layers_per_stage.empty() && shape.layers % (shape.pipeline * shape.chunks) != 0) {
    throw Inexpressible{"stages of unequal numbers of layers"};
  }
  if (shape.chunks > 1 && shape.accumulation % shape.pipeline != 0) {
    throw Inexpressible{"interleaved stages whose micro-batches do not fill rounds"};
  }
  return shape;
}

}  // namespace zl
