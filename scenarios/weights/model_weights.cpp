#include "scenarios/weights/model_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "scenarios/weights/tensor_names.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

constexpr const char* kHead = "lm_head.weight";

std::vector<std::int64_t> shape_of(const ParameterSpec& spec, const TensorPiece& piece) {
  if (spec.shape.rank() == 1) return {piece.rows};
  const std::int64_t columns = spec.count() / spec.shape[0];
  if (piece.transposed) return {columns, piece.rows};
  return {piece.rows, columns};
}

// How files made from TensorFlow's call the weights of BERT's norms; other names stay.
std::string tensorflow_name(std::string name) {
  for (const auto& [ours, theirs] : {std::pair{"LayerNorm.weight", "LayerNorm.gamma"},
                                     std::pair{"LayerNorm.bias", "LayerNorm.beta"}}) {
    if (name.ends_with(ours)) {
      return name.substr(0, name.size() - std::string_view(ours).size()) + theirs;
    }
  }
  return name;
}

// Finds the tensors of a model, and remembers what is wrong with them.
class Matcher {
 public:
  Matcher(const WeightFolder& folder, const ModelConfig& model, std::string type)
      : folder_(folder), model_(model), type_(std::move(type)) {}

  WeightFolder::Place find(const ParameterSpec& spec, const TensorPiece& piece) {
    const auto found = look_up(piece.name);
    if (!found && model_.encoder && is_head(piece.name)) {
      missing_.push_back(piece.name);
      return {};
    }
    if (!found) {
      defects_.push_back(piece.name + " is missing");
      return {};
    }
    const SafetensorsEntry& entry = *found->entry;
    const std::vector<std::int64_t> wanted = shape_of(spec, piece);
    if (entry.shape != wanted) {
      defects_.push_back(entry.name + " is " + shape_text(entry.shape) + ", the model's " +
                         shape_text(wanted));
    } else if (entry.dtype != DType::f32 && entry.dtype != DType::f16 &&
               entry.dtype != DType::bf16) {
      defects_.push_back(entry.name + " is of " + entry.code + ", not of F32, F16 or BF16");
    }
    return *found;
  }

  // After all tensors were looked for.
  void finish() {
    check_tied_head();
    for (const auto& [name, place] : folder_.tensors()) {
      if (used_.count(name) > 0 || is_buffer(name) || (model_.encoder && is_head(name))) continue;
      defects_.push_back(name + " is not used");
    }
    if (defects_.empty()) return;
    constexpr std::size_t kShown = 10;
    std::string list;
    for (std::size_t i = 0; i < std::min(kShown, defects_.size()); ++i) {
      list += (i == 0 ? "" : "; ") + shortened(defects_[i]);
    }
    if (defects_.size() > kShown) {
      list += "; and " + std::to_string(defects_.size() - kShown) + " more";
    }
    throw Error(ErrorCode::invalid, folder_.path() + ": the weights are not those of " +
                                        model_.name + " (" + type_ + "): " + list);
  }

  std::vector<std::string> missing() const { return missing_; }

 private:
  std::optional<WeightFolder::Place> take(const std::string& name) {
    const auto found = folder_.tensors().find(name);
    if (found == folder_.tensors().end()) return std::nullopt;
    used_.insert(name);
    return found->second;
  }

  // With the prefix of the base model or without; a tied head may stand for the embedding.
  std::optional<WeightFolder::Place> look_up(const std::string& name) {
    const std::string base(base_prefix(type_));
    const std::string other = name.starts_with(base) ? name.substr(base.size()) : base + name;
    for (const std::string& each : {name, other}) {
      if (auto found = take(each)) return found;
      if (auto found = take(tensorflow_name(each))) return found;
    }
    const bool embedding = name.ends_with("wte.weight") || name.ends_with("embed_tokens.weight");
    if (embedding && model_.tied_embeddings) return take(kHead);
    return std::nullopt;
  }

  // transformers 5 unties a head that differs from the embedding, whatever config.json says.
  void check_tied_head() {
    const auto head = folder_.tensors().find(kHead);
    if (!model_.tied_embeddings || head == folder_.tensors().end() || used_.count(kHead) > 0) {
      return;
    }
    used_.insert(kHead);
    for (const std::string& name : std::set<std::string>(used_)) {
      if (!name.ends_with("wte.weight") && !name.ends_with("embed_tokens.weight")) continue;
      if (is_equal(head->second, folder_.tensors().at(name))) return;
      defects_.push_back(std::string(kHead) + " differs from " + name +
                         " although config.json ties them; set tie_word_embeddings to false");
    }
  }

  static bool is_equal(const WeightFolder::Place& a, const WeightFolder::Place& b) {
    if (a.entry->shape != b.entry->shape) return false;
    const std::int64_t count = safetensors_bytes(1, a.entry->shape).value_or(0);
    constexpr std::int64_t kSlice = 1 << 18;
    for (std::int64_t done = 0; done < count; done += kSlice) {
      std::vector<float> left(static_cast<std::size_t>(std::min(kSlice, count - done)));
      std::vector<float> right(left.size());
      a.file->read(*a.entry, done, left);
      b.file->read(*b.entry, done, right);
      if (left != right) return false;
    }
    return true;
  }

  const WeightFolder& folder_;
  const ModelConfig& model_;
  std::string type_;
  std::set<std::string> used_;
  std::vector<std::string> defects_, missing_;
};

}  // namespace

std::string read_model_type(const std::string& folder) {
  const std::string path = path_in(folder, "config.json");
  const Json config = parse_json(read_file(path), path);
  if (config.is_object() && config.contains("model_type")) {
    return text_at(config["model_type"], path + ": model_type");
  }
  throw Error(ErrorCode::invalid, path + ": model_type is missing; give it, such as \"llama\"");
}

ModelWeights::ModelWeights(const std::string& folder, const ModelConfig& model) : folder_(folder) {
  const std::string type = read_model_type(folder);
  Matcher matcher(folder_, model, type);
  for (const ParameterSpec& spec : ParameterTable(model).specs) {
    Parameter& parameter = parameters_.emplace_back();
    parameter.columns = spec.count() / spec.shape[0];
    for (TensorPiece& piece : tensors_of(spec, model, type)) {
      const WeightFolder::Place place = matcher.find(spec, piece);
      parameter.pieces.push_back({std::move(piece), place});
    }
  }
  matcher.finish();
  missing_ = matcher.missing();
}

bool ModelWeights::has(int parameter) const {
  const std::vector<Piece>& pieces = parameters_[static_cast<std::size_t>(parameter)].pieces;
  return std::all_of(pieces.begin(), pieces.end(),
                     [](const Piece& piece) { return piece.place.file != nullptr; });
}

void ModelWeights::read(int parameter, std::int64_t begin, std::span<float> out) const {
  const Parameter& of = parameters_[static_cast<std::size_t>(parameter)];
  for (const Piece& piece : of.pieces) {
    const std::int64_t first = piece.named.first_row * of.columns;
    const std::int64_t last = first + piece.named.rows * of.columns;
    const std::int64_t from = std::max(begin, first);
    const std::int64_t to = std::min(begin + static_cast<std::int64_t>(out.size()), last);
    if (from < to) read_piece(of, piece, from - first, out.subspan(from - begin, to - from));
  }
}

void ModelWeights::read_piece(const Parameter& parameter, const Piece& piece, std::int64_t begin,
                              std::span<float> out) const {
  if (!piece.named.transposed) return piece.place.file->read(*piece.place.entry, begin, out);
  const std::vector<float>& whole = transposed(piece, parameter.columns);
  std::copy_n(whole.begin() + begin, out.size(), out.begin());
}

const std::vector<float>& ModelWeights::transposed(const Piece& piece, std::int64_t columns) const {
  Transposed* cached = nullptr;
  {
    const std::lock_guard lock(mutex_);
    cached = &cache_[std::this_thread::get_id()];
  }
  if (cached->piece == &piece) return cached->values;
  const std::int64_t rows = piece.named.rows;
  std::vector<float> stored(static_cast<std::size_t>(rows * columns));
  piece.place.file->read(*piece.place.entry, 0, stored);
  cached->values.resize(stored.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      cached->values[row * columns + column] = stored[column * rows + row];
    }
  }
  cached->piece = &piece;
  return cached->values;
}

}  // namespace zl
