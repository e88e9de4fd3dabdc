#include "scenarios/weights/save_model.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/attention_layout.h"
#include "scenarios/weights/huggingface_config.h"
#include "scenarios/weights/model_weights.h"
#include "scenarios/weights/weight_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// What a folder has besides weights and config.json: kept byte for byte.
constexpr const char* kSourceFiles[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "added_tokens.json",
                                        "chat_template.jinja",
                                        "special_tokens_map.json",
                                        "generation_config.json"};

// Of the first tensor of floats.
std::optional<DType> type_of(const std::string& folder) {
  if (folder.empty() || !has_weights(folder)) return std::nullopt;
  const WeightFolder weights(folder);
  for (const auto& [name, place] : weights.tensors()) {
    const auto dtype = place.entry->dtype;
    if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16) return dtype;
  }
  return std::nullopt;
}

std::string without_slash(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

// Where a folder waits until it is whole.
std::string beside_of(const std::string& folder) {
  return without_slash(folder) + ".tmp" + std::to_string(::getpid());
}

// Weights and configuration, of any earlier save: what a new one takes the place of.
bool is_of_a_save(const std::string& name) {
  return name == "config.json" || name == kWeightsIndex || name == kWeightsFile ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

void write_json(const std::string& path, const Json& value) {
  AtomicFile file(path);
  file.write(to_text(value, 2) + "\n");
  file.commit();
}

std::vector<float> transposed(const float* values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      out[column * rows + row] = values[row * columns + column];
    }
  }
  return out;
}

}  // namespace

void check_model_folder(const std::string& folder) {
  if (fs::exists(folder) && !fs::is_directory(folder)) {
    throw Error(ErrorCode::invalid, folder +
                                        ": this is a file; a model is saved as a folder, or "
                                        "as one file whose name ends in .safetensors");
  }
  const std::string beside = beside_of(folder);
  make_folders(beside);
  remove_entry(beside);
}

SavedModel::SavedModel(std::string folder, const ModelConfig& model, SaveModelOptions options)
    : folder_(without_slash(std::move(folder))),
      temporary_(beside_of(folder_)),
      model_(model),
      options_(std::move(options)) {
  check_model_folder(folder_);
  type_ = options_.source.empty() ? model_type_of(model_) : read_model_type(options_.source);
  dtype_ = options_.dtype ? *options_.dtype : type_of(options_.source).value_or(DType::f32);
  plan();
  fs::remove_all(temporary_);
  make_folders(temporary_);
}

SavedModel::~SavedModel() {
  shards_.clear();
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void SavedModel::plan() {
  for (const ParameterSpec& spec : ParameterTable(model_).specs) {
    for (TensorPiece& piece : tensors_of(spec, model_, type_)) {
      const std::int64_t columns = spec.count() / spec.shape[0];
      std::vector<std::int64_t> shape{piece.rows};
      if (spec.shape.rank() == 2) shape.push_back(columns);
      if (piece.transposed) std::swap(shape[0], shape[1]);
      const std::int64_t bytes = piece.rows * columns * static_cast<std::int64_t>(size_of(dtype_));
      tensors_.push_back({{piece.name, dtype_, std::move(shape)}, std::move(piece), bytes});
    }
  }
  plan_shards();
}

// The rule of huggingface_hub's split_state_dict_into_shards_factory: a tensor larger than the
// limit is a shard of its own, at once; the others fill one until the next would not fit.
void SavedModel::plan_shards() {
  std::vector<std::size_t> filling;
  std::int64_t filled = 0;
  const auto close = [this](const std::vector<std::size_t>& shard) {
    for (const std::size_t tensor : shard) tensors_[tensor].shard = shards_.size();
    if (!shard.empty()) shards_.push_back({shard.back()});
  };
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::int64_t bytes = tensors_[i].bytes;
    if (bytes > options_.shard_bytes) {
      close({i});
      continue;
    }
    if (filled + bytes > options_.shard_bytes) {
      close(std::exchange(filling, {}));
      filled = 0;
    }
    filling.push_back(i);
    filled += bytes;
  }
  close(filling);
}

std::string SavedModel::path(const std::string& file) const { return path_in(temporary_, file); }

std::string SavedModel::shard_name(std::size_t shard) const {
  if (shards_.size() == 1) return kWeightsFile;
  const auto five = [](std::size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "model-" + five(shard + 1) + "-of-" + five(shards_.size()) + ".safetensors";
}

void SavedModel::take(const ParameterSpec& spec, const std::vector<float>& values) {
  if (failure_) return;
  try {
    write(spec, values);
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

void SavedModel::write(const ParameterSpec& spec, const std::vector<float>& values) {
  const std::int64_t columns = spec.count() / spec.shape[0];
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  for (std::int64_t done = 0; done < rows; ++next_) {
    ZL_CHECK(next_ < tensors_.size(), "a saved model takes its parameters in their order");
    const Tensor& tensor = tensors_[next_];
    const float* first = values.data() + tensor.piece.first_row * columns;
    const std::int64_t count = tensor.piece.rows;
    TensorFileWriter& file = writer(tensor.shard);
    if (tensor.piece.transposed) {
      file.append(transposed(first, count, columns));
    } else {
      file.append({first, static_cast<std::size_t>(count * columns)});
    }
    done += count;
    Shard& shard = shards_[tensor.shard];
    if (shard.last != next_) continue;
    shard.file->commit();
    shard.file.reset();
  }
}

TensorFileWriter& SavedModel::writer(std::size_t number) {
  Shard& shard = shards_[number];
  if (shard.file == nullptr) {
    std::vector<TensorFileWriter::Tensor> tensors;
    for (const Tensor& tensor : tensors_) {
      if (tensor.shard == number) tensors.push_back(tensor.named);
    }
    // transformers 4 refuses a file without the format.
    shard.file = std::make_unique<TensorFileWriter>(
        path(shard_name(number)), tensors, std::map<std::string, std::string>{{"format", "pt"}});
  }
  return *shard.file;
}

void SavedModel::write_index() const {
  std::int64_t bytes = 0;
  std::map<std::string, std::string> files;
  for (const Tensor& tensor : tensors_) {
    bytes += tensor.bytes;
    files[tensor.named.name] = shard_name(tensor.shard);
  }
  Json index;
  index["metadata"] = {{"total_parameters", ParameterTable(model_).count()}, {"total_size", bytes}};
  index["weight_map"] = files;
  write_json(path(kWeightsIndex), index);
}

void SavedModel::write_config() const {
  const SaveModelOptions& how = options_;
  Json config = how.source.empty() ? huggingface_config(model_, type_, dtype_, how.labels)
                                   : source_config(how.source, model_, dtype_, how.labels);
  set_attention_layout(how.sparse, config);
  write_json(path("config.json"), config);
}

void SavedModel::copy_source_files() const {
  if (options_.source.empty()) return;
  for (const char* name : kSourceFiles) {
    const std::string from = path_in(options_.source, name);
    if (!is_file(from)) continue;
    AtomicFile file(path(name));
    file.write(read_file(from));
    file.commit();
  }
}

void SavedModel::commit() {
  if (failure_) throw Error(ErrorCode::failed, *failure_);
  ZL_CHECK(next_ == tensors_.size(), "a saved model has all its parameters");
  copy_source_files();
  write_config();
  if (shards_.size() > 1) write_index();
  replace();
}

// At once where the folder is new or the file system can exchange two names; what else lay in it
// comes along.
void SavedModel::replace() {
  const auto fail = [this](const char* what) {
    throw Error(ErrorCode::failed, folder_ + ": cannot " + what + ": " + std::strerror(errno));
  };
  if (!fs::exists(folder_)) {
    if (!rename_entry(temporary_, folder_)) fail("name the folder");
    return;
  }
  if (!exchange_entries(temporary_, folder_)) fail("put the saved model in its place");
  for (const fs::directory_entry& old : fs::directory_iterator(temporary_)) {
    const std::string name = old.path().filename().string();
    const std::string target = path_in(folder_, name);
    if (is_of_a_save(name) || fs::exists(target)) continue;
    if (!rename_entry(old.path().string(), target)) fail("keep the files that were in it");
  }
}

}  // namespace zl
