// Writes a trained model as the folder that transformers' from_pretrained loads.
// Ownership: owns the files that it writes, until commit(). Threads: rank 0's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_file.h"
#include "core/model/model_config.h"
#include "core/model/parameters.h"
#include "core/model/sparse_attention_config.h"
#include "scenarios/weights/tensor_names.h"

namespace zl {

struct SaveModelOptions {
  // Where the model came from, whose configuration, tokenizer and type are kept; empty: from here.
  std::string source;
  std::optional<DType> dtype;                // else the source's, else fp32
  std::vector<std::string> labels = {};      // names of those that it tells, by number
  SparseAttentionConfig sparse = {};         // what it was trained with
  std::int64_t shard_bytes = 5'000'000'000;  // huggingface_hub's 5GB
};

// Throws Error{invalid} for the name of a file, Error{failed} where no folder can be made beside
// it.
void check_model_folder(const std::string& folder);

// The folder appears whole, in place of one of that name, whose other files stay: what is written
// waits beside it. Memory: one parameter.
class SavedModel {
 public:
  // Throws Error{invalid} for a folder that is a file, or whose source has no config.json.
  SavedModel(std::string folder, const ModelConfig& model, SaveModelOptions options);
  ~SavedModel();
  SavedModel(const SavedModel&) = delete;
  SavedModel& operator=(const SavedModel&) = delete;

  // The parameters of ParameterTable(model) in its order, each whole. A file that cannot be written
  // fails commit(), not this.
  void take(const ParameterSpec& spec, const std::vector<float>& values);
  // Throws Error{failed} naming the file and the system's reason.
  void commit();

 private:
  struct Tensor {
    TensorFileWriter::Tensor named;
    TensorPiece piece;
    std::int64_t bytes = 0;
    std::size_t shard = 0;
  };
  struct Shard {
    std::size_t last = 0;  // of its tensors
    std::unique_ptr<TensorFileWriter> file = {};
  };
  void plan();
  void plan_shards();
  std::string shard_name(std::size_t shard) const;
  std::string path(const std::string& file) const;
  void write(const ParameterSpec& spec, const std::vector<float>& values);
  TensorFileWriter& writer(std::size_t shard);
  void write_index() const;
  void write_config() const;
  void copy_source_files() const;
  void replace();

  std::string folder_, temporary_;
  ModelConfig model_;
  SaveModelOptions options_;
  std::string type_;
  DType dtype_ = DType::f32;
  std::vector<Tensor> tensors_;
  std::vector<Shard> shards_;
  std::size_t next_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace zl
