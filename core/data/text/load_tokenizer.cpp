// Which tokenizer a file or folder is.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/text/json_view.h"
#include "core/data/text/staged_tokenizer.h"
#include "core/data/text/word_list.h"
#include "core/data/tokenizer.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

std::optional<JsonView> names_beside(const fs::path& file) {
  const std::string names = (file.parent_path() / "tokenizer_config.json").string();
  return is_file(names) ? std::optional(JsonView::of_file(names)) : std::nullopt;
}

std::unique_ptr<Tokenizer> load_file(const fs::path& file) {
  const std::optional<JsonView> names = names_beside(file);
  if (file.extension() == ".json") {
    return std::make_unique<StagedTokenizer>(JsonView::of_file(file.string()), names);
  }
  return std::make_unique<StagedTokenizer>(word_list_spec(file.string(), names), names);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (path.empty()) return std::make_unique<ByteTokenizer>();
  if (is_file(path)) return load_file(path);
  const fs::path folder(path);
  if (is_file((folder / "tokenizer.json").string())) return load_file(folder / "tokenizer.json");
  const bool gpt2 = is_file((folder / "vocab.json").string());
  if (!gpt2 && is_file((folder / "vocab.txt").string())) return load_file(folder / "vocab.txt");
  if (!gpt2) {
    throw Error(ErrorCode::invalid, path +
                                        ": no tokenizer.json, vocab.json with merges.txt, or "
                                        "vocab.txt there; name a tokenizer's folder or file");
  }
  return std::make_unique<Gpt2Tokenizer>(path);
}

}  // namespace zl
