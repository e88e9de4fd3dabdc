// The keys of another software's configuration, and what becomes of each: honoured, ignored with a
// reason, not implemented, or unknown. Its words are those of the DeepSpeed import.
// Ownership: a ForeignKeys owns the keys; it refers to its tables. Threads: used by one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/deepspeed/imported_strategy.h"
#include "simulator/json/reading.h"

namespace zl {

struct ForeignKey {
  std::string key;  // as written: "--lr", "parallelism.tensor_parallel_degree"
  Json value;
  std::int64_t line = 0;
};

// Keys that one reason is enough for.
struct ForeignGroup {
  enum class Fate : std::uint8_t {
    applied,          // becomes part of the strategy
    moot,             // accepted: the training is the same whatever the value
    of_model,         // the model's, which --model says
    not_implemented,  // known; any value but `off` keeps the strategy from running
  };
  Fate fate = Fate::applied;
  std::string_view keys;  // separated by spaces; "section.*" stands for all that begins so
  std::string_view why;
  std::string_view off = "false 0 1 none None null";  // values that ask for nothing
};

// Whether `word` is one of the list's.
bool has_word(std::string_view list, char separator, std::string_view word);

// A key of the strategy's canonical JSON and the software's own that says it, for messages.
struct ForeignName {
  std::string_view strategy, own;
};

// "args" of "dir/args.sh", what is no name left out.
std::string name_of_source(std::string_view source);

class ForeignKeys {
 public:
  ForeignKeys(std::vector<ForeignKey> keys, std::span<const ForeignGroup> groups,
              std::string source, std::string software);

  const ForeignKey* given(std::string_view key) const;  // the last one of the name

  // The values, nullopt where absent. Throw Error{invalid} "file:line: KEY: VALUE is not ...".
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least = 1,
                                      std::int64_t most = 1'000'000'000);
  // Ranks along one axis of a mesh, absent: 1. Products of four fit 64 bits.
  std::int64_t degree(std::string_view key) { return integer(key, 1, kMostDegree).value_or(1); }
  std::optional<double> number(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::string> one_of(std::string_view key, std::string_view choices);  // "a|b"
  bool flag(std::string_view key);  // absent: false

  // What the last of its name does, for its row.
  void note(std::string_view key, const std::string& why);
  void warn(const std::string& text) { out_.warnings.push_back(text); }
  // Keeps the strategy from running.
  void refuse(std::string_view key, const std::string& why);
  [[noreturn]] void fail(std::string_view key, const std::string& why) const;

  // Every row of effects, then the strategy as the DeepSpeed import checks it, `patch` (of its
  // canonical JSON; null: none) merged in. Throws Error{invalid} for what contradicts itself, by
  // the software's own names.
  ImportedStrategy finish(const Strategy& strategy, const Json& patch, const ImportContext& context,
                          std::span<const ForeignName> names);

 private:
  static constexpr std::int64_t kMostDegree = 32'768;

  void make_rows();
  Effect row_of(const ForeignKey& key);
  void read(std::string_view key) { read_.emplace_back(key); }

  std::vector<ForeignKey> keys_;
  std::span<const ForeignGroup> groups_;
  std::string source_, software_;
  std::vector<std::string> read_;
  std::vector<std::pair<std::string, std::string>> notes_, refusals_;
  ImportedStrategy out_;
};

}  // namespace zl
