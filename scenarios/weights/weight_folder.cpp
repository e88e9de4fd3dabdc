#include "scenarios/weights/weight_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/checkpoint/file_checksum.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_weights(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::invalid, path + ": " + what);
}

// A file of the folder, not a way out of it.
void require_plain(const std::string& index, const std::string& file) {
  if (file.empty() || file.find('/') != std::string::npos || file.find('\0') != std::string::npos ||
      file == "." || file == "..") {
    refuse_weights(index,
                   "weight_map: \"" + shortened(file) + "\" is not the name of a file beside it");
  }
}

[[noreturn]] void refuse_without_weights(const std::string& folder) {
  const std::string pickled = pickled_weights(folder);
  if (pickled.empty()) {
    refuse_weights(folder,
                   std::string("no weights: neither ") + kWeightsFile + " nor " + kWeightsIndex);
  }
  refuse_weights(pickled,
                 "pickled weights run code when they are read and are not opened; convert them: "
                 "transformers' save_pretrained writes model.safetensors");
}

}  // namespace

WeightFolder::WeightFolder(std::string folder) : folder_(std::move(folder)) {
  if (is_file(path_in(folder_, kWeightsIndex))) {
    read_index();
  } else if (is_file(path_in(folder_, kWeightsFile))) {
    open(kWeightsFile);
  } else {
    refuse_without_weights(folder_);
  }
}

void WeightFolder::open(const std::string& file) {
  const TensorFile& opened =
      *files_.emplace_back(std::make_unique<TensorFile>(path_in(folder_, file)));
  for (const SafetensorsEntry& entry : opened.header().entries) {
    const auto [place, is_new] = tensors_.insert({entry.name, {&opened, &entry}});
    if (!is_new) {
      refuse_weights(opened.path(), "tensor \"" + shortened(entry.name) + "\" is also in " +
                                        place->second.file->path());
    }
  }
}

void WeightFolder::read_index() {
  const std::string path = path_in(folder_, kWeightsIndex);
  const Json index = parse_json(read_file(path), path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) {
    refuse_weights(path, "weight_map is not an object of tensors and their files");
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = text_at(file, path + ": weight_map." + shortened(tensor));
    require_plain(path, name);
    files.insert(name);
  }
  for (const std::string& file : files) {
    if (!is_file(path_in(folder_, file))) {
      refuse_weights(path,
                     "weight_map: the file " + file + " is missing; bring it beside the index");
    }
    open(file);
  }
  for (const auto& [tensor, file] : map->items()) {
    const auto found = tensors_.find(tensor);
    if (found != tensors_.end() &&
        fs::path(found->second.file->path()).filename().string() == file.get<std::string>()) {
      continue;
    }
    refuse_weights(
        path_in(folder_, file.get<std::string>()),
        "tensor \"" + shortened(tensor) + "\", which " + kWeightsIndex + " names, is not in it");
  }
}

std::string WeightFolder::fingerprint() const {
  constexpr std::int64_t kSample = 256;
  std::uint32_t crc = 0;
  std::int64_t bytes = 0;
  for (const auto& file : files_) {
    const SafetensorsHeader& header = file->header();
    const auto add = [&crc](const void* data, std::size_t size) {
      crc = crc32c(static_cast<const std::byte*>(data), static_cast<std::int64_t>(size), crc);
    };
    add(header.text.data(), header.text.size());
    for (const SafetensorsEntry& entry : header.entries) {
      const std::int64_t size = entry.end - entry.begin;
      bytes += size;
      for (const std::int64_t from : {std::int64_t{0}, std::max<std::int64_t>(0, size - kSample)}) {
        const auto sample = file->bytes(header.data + entry.begin + from, std::min(kSample, size));
        add(sample.data(), sample.size());
      }
    }
  }
  return std::to_string(tensors_.size()) + " tensors, " + std::to_string(bytes) +
         " bytes, crc32c " + checksum_digits(crc);
}

}  // namespace zl
