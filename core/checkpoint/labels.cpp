#include "core/checkpoint/labels.h"

#include "core/base/error.h"

namespace zl {
namespace {

constexpr const char* kFileOfRank = "file of rank ";

bool only_tells(const std::string& name) {
  return name == kProgram || name == kBest || name.starts_with(kFileOfRank) ||
         name.ends_with(kFilesFolder);
}

}  // namespace

std::string file_label(int rank) { return kFileOfRank + std::to_string(rank); }

std::string text_of(const WrittenFile& file) {
  return std::to_string(file.bytes) + " bytes, crc32c " + checksum_digits(file.checksum);
}

std::string difference(const Labels& found, const Labels& wanted) {
  for (const auto& [name, value] : wanted) {
    if (only_tells(name)) continue;
    const auto label = found.find(name);
    if (label == found.end()) return "it does not say its " + name + ", which is to be " + value;
    if (label->second != value) return "its " + name + " is " + label->second + ", not " + value;
  }
  for (const auto& [name, value] : found) {
    if (!only_tells(name) && !wanted.contains(name)) {
      return "its " + name + " is " + value + ", of which this run has none";
    }
  }
  return "";
}

SafetensorsFile read_labelled(const std::string& path, const Labels& wanted) {
  SafetensorsFile file = read_safetensors(path);
  std::string defect = "it has no checksum";
  if (file.written) defect = difference(file.metadata, wanted);
  if (!defect.empty()) throw Error(ErrorCode::invalid, path + ": " + defect);
  return file;
}

}  // namespace zl
