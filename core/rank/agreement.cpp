#include "core/rank/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "core/base/text.h"
#include "core/threads/failures.h"

namespace zl {
namespace {

// Travels as bytes.
struct Digest {
  std::uint64_t digest = 0;
  std::int64_t bytes = 0;  // of the text
  std::int64_t code = 0;   // an ErrorCode; 0: no failure
};

// Memory of the rank's device for the collectives below.
class Scratch {
 public:
  Scratch(Device& device, std::int64_t bytes)
      : device_(device), bytes_(bytes), data_(device.reserve(MemorySpace::device, bytes)) {
    if (data_ == nullptr) throw Error(ErrorCode::failed, "out of memory before the first step");
  }
  ~Scratch() { device_.release(MemorySpace::device, data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return data_; }

 private:
  Device& device_;
  std::int64_t bytes_;
  std::byte* data_;
};

// Everybody's bytes in order of rank; all give equally many.
std::string gather(RankHandle rank, std::string_view mine) {
  constexpr StreamId kStream = StreamId::compute;
  auto& [device, communicator] = rank;
  const auto bytes = static_cast<std::int64_t>(mine.size());
  const std::int64_t total = bytes * communicator.size();
  const Scratch scratch(device, bytes + total);
  const Segment segment{{scratch.data(), DType::u8, Shape{bytes}},
                        {scratch.data() + bytes, DType::u8, Shape{total}}};
  std::string all(static_cast<std::size_t>(total), '\0');
  device.copy(kStream, segment.source.data, reinterpret_cast<const std::byte*>(mine.data()), bytes,
              nullptr);
  communicator.run(kStream,
                   {CollectiveKind::all_gather, ReduceOp::sum, Purpose::control, {&segment, 1}},
                   nullptr);
  device.copy(kStream, reinterpret_cast<std::byte*>(all.data()), segment.destination.data, total,
              nullptr);
  device.synchronize(kStream);
  return all;
}

std::string text_of(const Statement& statement) {
  if (statement.failure) return message_of(statement.failure);
  std::string text;
  for (const Fact& fact : statement.facts) {
    text.append(fact.key).append(1, '\0').append(fact.value).append(1, '\0');
  }
  return text;
}

std::vector<Fact> facts_of(std::string_view text) {
  const auto take = [&text] {
    const std::size_t end = text.find('\0');
    std::string part(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return part;
  };
  std::vector<Fact> facts;
  while (!text.empty()) {
    std::string key = take();
    facts.push_back({std::move(key), take()});
  }
  return facts;
}

std::int64_t code_of(const std::exception_ptr& failure) {
  if (!failure) return 0;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return static_cast<std::int64_t>(error.code());
  } catch (...) {
    return static_cast<std::int64_t>(ErrorCode::failed);
  }
}

std::vector<Digest> gather_digests(RankHandle rank, const Statement& statement,
                                   const std::string& text) {
  Fnv1a fnv;
  fnv.add(text);
  const Digest mine{fnv.value(), static_cast<std::int64_t>(text.size()),
                    code_of(statement.failure)};
  const std::string all = gather(rank, {reinterpret_cast<const char*>(&mine), sizeof mine});
  std::vector<Digest> digests(static_cast<std::size_t>(rank.communicator.size()));
  std::memcpy(digests.data(), all.data(), all.size());
  return digests;
}

std::vector<std::string> gather_texts(RankHandle rank, std::string mine,
                                      const std::vector<Digest>& digests) {
  std::int64_t longest = 1;
  for (const Digest& each : digests) longest = std::max(longest, each.bytes);
  mine.resize(static_cast<std::size_t>(longest));
  const std::string all = gather(rank, mine);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    texts.push_back(all.substr(i * mine.size(), static_cast<std::size_t>(digests[i].bytes)));
  }
  return texts;
}

std::optional<std::string> value_of(const std::vector<Fact>& facts, const std::string& key) {
  for (const Fact& fact : facts) {
    if (fact.key == key) return fact.value;
  }
  return std::nullopt;
}

// "run.seed: rank 0 has 1, rank 1, 2 has 2"; "" when all have the same.
std::string describe_key(const std::string& key, const std::vector<std::vector<Fact>>& facts) {
  std::vector<std::pair<std::optional<std::string>, std::string>> values;  // and who has them
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const auto value = value_of(facts[rank], key);
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& each) { return each.first == value; });
    if (found == values.end()) {
      values.emplace_back(value, std::to_string(rank));
    } else {
      found->second += ", " + std::to_string(rank);
    }
  }
  if (values.size() == 1) return "";
  std::string text = key + ":";
  for (const auto& [value, ranks] : values) {
    text += (text.ends_with(":") ? " rank " : ", rank ") + ranks + " has " +
            (value ? shortened(*value) : "none");
  }
  return text;
}

}  // namespace

std::string describe_differences(const std::vector<std::vector<Fact>>& facts) {
  constexpr int kShown = 3;
  std::vector<std::string> keys;
  for (const std::vector<Fact>& of_rank : facts) {
    for (const Fact& fact : of_rank) {
      if (std::find(keys.begin(), keys.end(), fact.key) == keys.end()) keys.push_back(fact.key);
    }
  }
  std::string text;
  int count = 0;
  for (const std::string& key : keys) {
    const std::string difference = describe_key(key, facts);
    if (difference.empty() || ++count > kShown) continue;
    text += (text.empty() ? "" : "; ") + difference;
  }
  if (count > kShown) text += "; and " + std::to_string(count - kShown) + " more";
  return text;
}

void agree(RankHandle rank, const Statement& statement) {
  const int me = rank.communicator.rank();
  const std::string mine = text_of(statement);
  const std::vector<Digest> digests = gather_digests(rank, statement, mine);
  const auto is_as_first = [&](const Digest& each) { return each.digest == digests[0].digest; };
  const auto has_failed = [](const Digest& each) { return each.code != 0; };
  const auto failed = std::find_if(digests.begin(), digests.end(), has_failed);
  if (failed == digests.end() && std::all_of(digests.begin(), digests.end(), is_as_first)) return;
  const std::vector<std::string> texts = gather_texts(rank, mine, digests);
  if (statement.failure) std::rethrow_exception(statement.failure);
  if (failed != digests.end()) {
    const auto of = static_cast<std::size_t>(failed - digests.begin());
    throw RankLeft("rank " + std::to_string(of) + ": " + texts[of],
                   static_cast<ErrorCode>(failed->code));
  }
  std::vector<std::vector<Fact>> facts;
  for (const std::string& text : texts) facts.push_back(facts_of(text));
  const std::string message = "the ranks do not run the same: " + describe_differences(facts) +
                              "; start all of them with one program, one set of arguments and "
                              "equal files";
  if (me > 0) throw RankLeft(message, ErrorCode::invalid);
  throw Error(ErrorCode::invalid, message);
}

}  // namespace zl
