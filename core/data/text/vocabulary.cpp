#include "core/data/text/vocabulary.h"

#include <algorithm>

#include "core/base/text.h"

namespace zl {

Vocabulary::Vocabulary(const JsonView& spec) {
  const auto members = spec.members();
  const std::int64_t most = static_cast<std::int64_t>(members.size()) + kMostIdGaps;
  ids_.reserve(members.size());
  for (const auto& [text, value] : members) {
    const auto id = static_cast<std::int32_t>(value.integer(0, most - 1));
    const auto at = static_cast<std::size_t>(id);
    if (at >= texts_.size()) texts_.resize(at + 1);
    if (texts_[at] != nullptr) {
      value.refuse("id " + std::to_string(id) + " is also that of \"" + shortened(*texts_[at]) +
                   "\"; each token has its own");
    }
    texts_[at] = &ids_.emplace(text, id).first->first;
    longest_ = std::max(longest_, text.size());
  }
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::text_of(std::int32_t id) const {
  return id < 0 || id >= size() ? nullptr : texts_[static_cast<std::size_t>(id)];
}

}  // namespace zl
