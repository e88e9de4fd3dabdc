// Writes small GGUF files for tests: version 3, fp32 tensors whose element i is i.
// Ownership: owns what it was given. Threads: one test.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zl::test {

class GgufWriter {
 public:
  void text(const std::string& key, const std::string& value) { put(key, 8, string_of(value)); }
  void integer(const std::string& key, std::uint32_t value) { put(key, 4, bytes_of(value)); }
  void number(const std::string& key, float value) { put(key, 6, bytes_of(value)); }

  void texts(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = bytes_of(std::uint32_t{8}) + bytes_of(std::uint64_t{values.size()});
    for (const std::string& value : values) bytes += string_of(value);
    put(key, 9, bytes);
  }
  void integers(const std::string& key, const std::vector<std::int32_t>& values) {
    list(key, 5, values);
  }
  void numbers(const std::string& key, const std::vector<float>& values) { list(key, 6, values); }

  void tensor(const std::string& name, std::vector<std::uint64_t> shape) {
    tensors_.emplace_back(name, std::move(shape));
  }

  void save(const std::string& path) const {
    std::string header = "GGUF" + bytes_of(std::uint32_t{3}) +
                         bytes_of(std::uint64_t{tensors_.size()}) +
                         bytes_of(std::uint64_t{values_.size()});
    for (const auto& [key, value] : values_) header += string_of(key) + value;
    std::string data;
    for (const auto& [name, shape] : tensors_) {
      header += string_of(name) + bytes_of(static_cast<std::uint32_t>(shape.size()));
      std::uint64_t elements = 1;
      for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) {
        header += bytes_of(*dim);
        elements *= *dim;
      }
      header += bytes_of(std::uint32_t{0}) + bytes_of(std::uint64_t{data.size()});
      for (std::uint64_t i = 0; i < elements; ++i) data += bytes_of(static_cast<float>(i));
      pad(data);
    }
    pad(header);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << header << data;
  }

 private:
  template <class T>
  static std::string bytes_of(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string string_of(const std::string& text) {
    return bytes_of(std::uint64_t{text.size()}) + text;
  }
  static void pad(std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32, '\0'); }

  template <class T>
  void list(const std::string& key, std::uint32_t type, const std::vector<T>& values) {
    std::string bytes = bytes_of(type) + bytes_of(std::uint64_t{values.size()});
    for (const T& value : values) bytes += bytes_of(value);
    put(key, 9, bytes);
  }
  void put(const std::string& key, std::uint32_t type, const std::string& bytes) {
    values_[key] = bytes_of(type) + bytes;
  }

  std::map<std::string, std::string> values_;
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> tensors_;
};

// A model of one layer with 2 heads of 4 elements, F = 6, V = 3, whose element i of each tensor
// is i.
inline GgufWriter tiny_gguf(const std::string& family) {
  GgufWriter file;
  const std::string prefix = family + ".";
  file.text("general.architecture", family);
  file.integer(prefix + "block_count", 1);
  file.integer(prefix + "context_length", 16);
  file.integer(prefix + "embedding_length", 8);
  file.integer(prefix + "feed_forward_length", 6);
  file.integer(prefix + "attention.head_count", 2);
  file.integer(prefix + "attention.head_count_kv", 1);
  file.number(prefix + "attention.layer_norm_rms_epsilon", 1e-6f);
  file.tensor("token_embd.weight", {3, 8});
  file.tensor("output_norm.weight", {8});
  file.tensor("blk.0.attn_norm.weight", {8});
  file.tensor("blk.0.ffn_norm.weight", {8});
  file.tensor("blk.0.attn_output.weight", {8, 8});
  file.tensor("blk.0.ffn_down.weight", {8, 6});
  if (family == "phi3") {
    file.tensor("blk.0.attn_qkv.weight", {16, 8});
    file.tensor("blk.0.ffn_up.weight", {12, 8});
    return file;
  }
  file.tensor("blk.0.attn_q.weight", {8, 8});
  file.tensor("blk.0.attn_k.weight", {4, 8});
  file.tensor("blk.0.attn_v.weight", {4, 8});
  file.tensor("blk.0.ffn_gate.weight", {6, 8});
  file.tensor("blk.0.ffn_up.weight", {6, 8});
  if (family == "qwen3") {
    file.tensor("blk.0.attn_q_norm.weight", {4});
    file.tensor("blk.0.attn_k_norm.weight", {4});
  }
  return file;
}

}  // namespace zl::test
