#include "core/data/token_store.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/error.h"
#include "core/base/files.h"

namespace zl {
namespace {

static_assert(std::endian::native == std::endian::little, ".bin files are little-endian");

using Id = std::uint16_t;  // in .bin files

constexpr std::int64_t kHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int32_t kMagic = 20240520;
constexpr std::int32_t kLlama3Magic = 20240801;  // the same layout with uint32 tokens

[[noreturn]] void invalid(const std::string& name, const std::string& defect) {
  throw Error(ErrorCode::invalid, name + ": " + defect);
}

template <class T>
class KeptTokens final : public TokenStore {
 public:
  explicit KeptTokens(const std::vector<std::int32_t>& tokens)
      : tokens_(tokens.begin(), tokens.end()) {}

  std::int64_t count() const override { return static_cast<std::int64_t>(tokens_.size()); }
  void read(std::int64_t start, std::span<std::int32_t> out) const override {
    std::copy_n(tokens_.begin() + start, out.size(), out.begin());
  }

 private:
  std::vector<T> tokens_;
};

// The bytes before the tokens: an llm.c header, checked against the file's size, or none.
std::int64_t header_bytes(const InputFile& file) {
  std::array<std::int32_t, 3> header{};  // magic, version, number of tokens
  const std::int64_t size = file.size();
  const auto there = static_cast<std::size_t>(std::min<std::int64_t>(size, sizeof header));
  file.read(0, std::as_writable_bytes(std::span(header)).first(there));
  if (header[0] == kLlama3Magic) {
    invalid(file.path(), "holds uint32 tokens (magic 20240801); only uint16 tokens are read");
  }
  if (header[0] != kMagic) return 0;
  if (size < kHeaderBytes) {
    invalid(file.path(), "truncated: " + std::to_string(size) + " bytes of a 1024-byte header");
  }
  if (header[1] != 1) {
    invalid(file.path(), "header version " + std::to_string(header[1]) + " is not 1");
  }
  const std::int64_t body = size - kHeaderBytes;
  const std::int64_t expected = 2 * std::int64_t{header[2]};
  if (expected != body) {
    invalid(file.path(), std::string(expected > body ? "truncated: " : "") +
                             "the header promises " + std::to_string(header[2]) +
                             " tokens, the file has " + std::to_string(body / 2));
  }
  return kHeaderBytes;
}

// Not mapped: reading a mapping of a file that was cut short ends the process.
class FileTokens final : public TokenStore {
 public:
  explicit FileTokens(const std::string& path) : file_(path) {
    if (file_.size() == 0) invalid(path, "is empty");
    begin_ = header_bytes(file_);
    const std::int64_t body = file_.size() - begin_;
    if (body == 0) invalid(path, "holds no tokens");
    if (body % 2 != 0) {
      invalid(path,
              "truncated: " + std::to_string(body) + " bytes are no whole number of uint16 tokens");
    }
    count_ = body / 2;
  }

  std::int64_t count() const override { return count_; }
  void read(std::int64_t start, std::span<std::int32_t> out) const override {
    std::vector<Id> ids(out.size());
    file_.read(begin_ + 2 * start, std::as_writable_bytes(std::span(ids)));
    std::copy(ids.begin(), ids.end(), out.begin());
  }

 private:
  InputFile file_;
  std::int64_t begin_ = 0, count_ = 0;
};

}  // namespace

std::shared_ptr<const TokenStore> keep_tokens(const std::vector<std::int32_t>& tokens,
                                              std::int64_t vocab) {
  if (vocab <= 65536) return std::make_shared<KeptTokens<Id>>(tokens);
  return std::make_shared<KeptTokens<std::int32_t>>(tokens);
}

std::shared_ptr<const TokenStore> open_tokens(const std::string& path) {
  return std::make_shared<FileTokens>(path);
}

}  // namespace zl
