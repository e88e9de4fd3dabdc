// The weights of a Hugging Face folder, as the parameters of a model begin with them.
// Ownership: owns the open files. Threads: read() may be called by many ranks at once.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/model/model_config.h"
#include "core/model/weight_source.h"
#include "scenarios/weights/tensor_names.h"
#include "scenarios/weights/weight_folder.h"

namespace zl {

class ModelWeights final : public WeightSource {
 public:
  // Compares names, types and shapes before any data is read. Throws Error{invalid} that lists up
  // to ten tensors that are missing, of another shape (both are told), of no weight's type, or not
  // the model's: each tensor of the files is used once. Buffers are passed over. A tied head may be
  // in the files too, where it has the bits of the embedding, or in its place.
  // The head of an encoder may be missing, or be that of another task.
  ModelWeights(const std::string& folder, const ModelConfig& model);

  bool has(int parameter) const override;
  void read(int parameter, std::int64_t begin, std::span<float> out) const override;
  std::string fingerprint() const { return folder_.fingerprint(); }
  // The tensors of an encoder's head that the files lack; empty: they have all.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  struct Piece {
    TensorPiece named;
    WeightFolder::Place place;
  };
  struct Parameter {
    std::int64_t columns = 1;
    std::vector<Piece> pieces;
  };
  // A transposed tensor is read whole, and serves a rank until it asks for another.
  struct Transposed {
    const Piece* piece = nullptr;
    std::vector<float> values;
  };
  const std::vector<float>& transposed(const Piece& piece, std::int64_t columns) const;
  void read_piece(const Parameter& parameter, const Piece& piece, std::int64_t begin,
                  std::span<float> out) const;

  WeightFolder folder_;
  std::vector<Parameter> parameters_;  // by number
  std::vector<std::string> missing_;
  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, Transposed> cache_;
};

// The folder's own model_type.
std::string read_model_type(const std::string& folder);

}  // namespace zl
