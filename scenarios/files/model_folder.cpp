#include "scenarios/files/model_folder.h"

#include <filesystem>

#include "core/base/files.h"

namespace zl {

std::string path_in(const std::string& folder, const std::string& file) {
  return (std::filesystem::path(folder) / file).string();
}

bool is_weights_file(const std::string& path) {
  if (path.ends_with(".safetensors")) return true;
  std::error_code ignored;
  const auto entry = std::filesystem::symlink_status(path, ignored);
  return std::filesystem::exists(entry) && !std::filesystem::is_directory(path, ignored);
}

std::string pickled_weights(const std::string& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt",
                           "model.pth", "consolidated.00.pth"}) {
    if (is_file(path_in(folder, name))) return path_in(folder, name);
  }
  return {};
}

bool has_weights(const std::string& folder) {
  return is_file(path_in(folder, kWeightsFile)) || is_file(path_in(folder, kWeightsIndex)) ||
         !pickled_weights(folder).empty();
}

bool has_tokenizer(const std::string& folder) {
  return is_file(path_in(folder, "tokenizer.json")) || is_file(path_in(folder, "vocab.txt")) ||
         (is_file(path_in(folder, "vocab.json")) && is_file(path_in(folder, "merges.txt")));
}

}  // namespace zl
