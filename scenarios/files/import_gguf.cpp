#include "scenarios/files/import_gguf.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/checkpoint/gguf.h"
#include "core/checkpoint/tensor_file.h"
#include "scenarios/files/gguf_config.h"
#include "scenarios/files/gguf_tensors.h"
#include "scenarios/files/gguf_tokenizer.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

void write_weights(const GgufFile& file, const std::vector<GgufCopy>& copies, DType dtype,
                   const std::string& path) {
  std::vector<TensorFileWriter::Tensor> tensors;
  for (const GgufCopy& copy : copies) tensors.push_back({copy.name, dtype, copy.shape});
  TensorFileWriter writer(path, tensors, {{"format", "pt"}});
  for (const GgufCopy& copy : copies) {
    read_copy(file, copy, [&writer](std::span<const float> values) { writer.append(values); });
  }
  writer.commit();
}

void write_json(const std::string& path, const Json& value) {
  AtomicFile file(path);
  file.write(value.dump(2) + "\n");
  file.commit();
}

void require_absent(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    if (is_file(path)) {
      throw Error(ErrorCode::invalid, path + ": it is already there; --force replaces it");
    }
  }
}

const char* config_dtype(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::bf16 ? "bfloat16" : "float16";
}

}  // namespace

GgufImport import_gguf(const std::string& path, const std::string& folder, DType dtype,
                       bool replace) {
  if (dtype != DType::f32 && !is_half(dtype)) {
    throw Error(ErrorCode::invalid, std::string("weights in ") + name_of(dtype) +
                                        " are not written; fp32, bf16 and fp16 are");
  }
  const GgufFile file(path);
  Json config = gguf_config(file);
  const std::vector<GgufCopy> copies = gguf_copies(file, config);
  const std::optional<Json> tokenizer = gguf_tokenizer(file);
  const auto place = [&folder](const char* name) { return (fs::path(folder) / name).string(); };
  GgufImport done{config["model_type"],
                  static_cast<std::int64_t>(copies.size()),
                  0,
                  {place("model.safetensors")},
                  tokenizer.has_value()};
  if (tokenizer) {
    done.files.push_back(place("tokenizer.json"));
    done.files.push_back(place("tokenizer_config.json"));
  }
  done.files.push_back(place("config.json"));
  if (!replace) require_absent(done.files);
  config["dtype"] = config["torch_dtype"] = config_dtype(dtype);
  for (const GgufCopy& copy : copies) done.parameters += copy.tensor->elements;
  make_folders(folder);
  write_weights(file, copies, dtype, done.files[0]);
  if (tokenizer) {
    write_json(place("tokenizer.json"), *tokenizer);
    write_json(place("tokenizer_config.json"), gguf_tokenizer_config(file));
  }
  write_json(place("config.json"), config);
  return done;
}

}  // namespace zl
