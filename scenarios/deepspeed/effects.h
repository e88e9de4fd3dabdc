// What became of each key of a DeepSpeed file, noted while sections are built.
// Ownership: refers to the given keys, which must outlive it. Threads: used by one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/deepspeed/imported_strategy.h"
#include "scenarios/deepspeed/reading.h"

namespace zl {

class Effects {
 public:
  explicit Effects(const std::vector<GivenKey>& keys);

  const std::vector<GivenKey>& keys() const { return keys_; }  // in file order
  const GivenKey* given(const std::string& path) const;        // nullptr: absent or rejected
  const Effect* row_of(const GivenKey& key) const;             // nullptr: none so far
  bool any_rejected() const { return !rejections_.empty(); }

  // Each replaces the row of the path. Of `not_implemented`: only refuse() keeps it from running.
  void record(const std::string& path, const Json& effective, EffectStatus status, std::string why);
  void reject(const std::string& path, const std::string& why);
  void refuse(const std::string& path, const std::string& why);
  // `text` begins with the key: it stands behind "strategy.".
  void warn(const std::string& text);
  // A key as written that has no effect here: all of them make one warning.
  void warn_ignored(const std::string& key, const std::string& why);
  // Given keys below the prefix that have no row yet.
  void mark_unused(std::string_view prefix, const std::string& why);

  // Moves everything noted to `out`: rows of the file's keys in its order, then the defaults.
  void move_to(ImportedStrategy& out);

 private:
  const std::vector<GivenKey>& keys_;
  std::map<std::string, const GivenKey*> by_path_;
  std::map<std::string, Effect> rows_;
  std::vector<std::string> default_order_;
  std::vector<std::string> warnings_, refusals_, rejections_;
  std::vector<std::string> ignored_;  // keys
  std::string ignored_why_;           // of the last
};

}  // namespace zl
