// The weights of a folder as Hugging Face lays it out: model.safetensors, or shards and their
// index. Ownership: owns its open files. Threads: const members may be called by many.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_file.h"
#include "scenarios/files/model_folder.h"

namespace zl {

class WeightFolder {
 public:
  // Opens all files. Throws Error{invalid} naming the folder, file or tensor: no weights, pickled
  // weights, an index that names a missing file or a path, a shard without a tensor that the index
  // says it has, a damaged header.
  explicit WeightFolder(std::string folder);

  struct Place {
    const TensorFile* file = nullptr;
    const SafetensorsEntry* entry = nullptr;
  };
  const std::string& path() const { return folder_; }
  const std::map<std::string, Place>& tensors() const { return tensors_; }

  // Of names, types, shapes, sizes, and the first and last bytes of each tensor: tells models apart
  // without reading them whole.
  std::string fingerprint() const;

 private:
  void open(const std::string& file);
  void read_index();

  std::string folder_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::map<std::string, Place> tensors_;
};

}  // namespace zl
