// Where the tokens of a text lie: in memory, or in a .bin file that is read as they are asked for.
// Ownership: a store owns its tokens or its open file. Threads: read() may run on many at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zl {

class TokenStore {
 public:
  virtual ~TokenStore() = default;
  virtual std::int64_t count() const = 0;
  // Tokens start, start + 1, ...; as many as `out` takes, which must be there. Throws Error naming
  // the file when it has been cut short, or cannot be read.
  virtual void read(std::int64_t start, std::span<std::int32_t> out) const = 0;
};

// In as few bytes as ids below `vocab` need.
std::shared_ptr<const TokenStore> keep_tokens(const std::vector<std::int32_t>& tokens,
                                              std::int64_t vocab);

// A file of TokenSource::open's. Throws Error{invalid} naming the file and the defect.
std::shared_ptr<const TokenStore> open_tokens(const std::string& path);

}  // namespace zl
