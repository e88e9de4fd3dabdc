#include "scenarios/files/file_kind.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/deepspeed/keys.h"

namespace zl {
namespace {

constexpr std::size_t kSniffed = 4096;

bool has_any(const Json& object, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&object](const char* key) { return object.contains(key); });
}

}  // namespace

FileKind file_kind(const Json& file) {
  if (!file.is_object() || file.empty()) return FileKind::unknown;
  if (has_any(file, {"model", "strategies"})) return FileKind::scenario;
  if (has_any(file, {"model_type", "architectures", "hidden", "hidden_size", "n_embd", "family"})) {
    return FileKind::model;
  }
  for (const auto& item : file.items()) {
    if (!item.key().starts_with("x-") && !is_known_path(item.key())) return FileKind::unknown;
  }
  return FileKind::strategy;
}

std::string binary_kind(std::string_view bytes) {
  const std::string_view begin = bytes.substr(0, kSniffed);
  if (begin.starts_with("PK\x03\x04")) return "a zip archive, as PyTorch's checkpoints are";
  if (begin.starts_with("GGUF")) return "a GGUF file";
  if (begin.find('\0') == std::string_view::npos) return "";
  // Eight bytes of length, then the header.
  return begin.size() > 8 && begin[8] == '{' ? "a safetensors file" : "binary data";
}

void require_no_pickle(std::string_view begin, const std::string& path) {
  begin = begin.substr(0, kSniffed);
  // torch.save: a zip whose first member is the pickle, or before 1.6 a pickled magic number.
  const bool zip = begin.starts_with("PK\x03\x04") && begin.find("data.pkl") != begin.npos;
  const bool old = begin.starts_with("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19");
  if (!zip && !old) return;
  throw Error(ErrorCode::invalid,
              path +
                  ": this is a PyTorch checkpoint, a pickle, and reading one runs the code in "
                  "it; where you trust it, load it with transformers and save_pretrained() "
                  "writes model.safetensors, which is read here");
}

void require_strategy(std::string_view text, const std::string& path) {
  const auto refuse = [&path](const std::string& what) {
    throw Error(ErrorCode::invalid, path + ": this is " + what);
  };
  require_no_pickle(text, path);
  if (const std::string kind = binary_kind(text); !kind.empty()) {
    refuse(kind + ", not a strategy, which is a DeepSpeed JSON file");
  }
  const FileKind kind = file_kind(json_or_null(text));
  if (kind == FileKind::model) refuse("a model, not a strategy; use --model " + path);
  if (kind == FileKind::scenario) refuse("a scenario, not a strategy; `zerolab run " + path + "`");
}

std::string model_path(const std::string& path) {
  const std::string config = (std::filesystem::path(path) / "config.json").string();
  return !is_file(path) && is_file(config) ? config : path;
}

}  // namespace zl
