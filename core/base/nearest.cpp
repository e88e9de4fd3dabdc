#include "core/base/nearest.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace zl {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

namespace {

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 100;  // the work grows with the length, the likeness does not
  word = word.substr(0, kLongest);
  std::string best;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(lower_case(word), lower_case(candidate));
    if (distance < smallest) {
      smallest = distance;
      best = candidate;
    }
  }
  return best;
}

std::string nearest_divisors(std::int64_t size, std::int64_t value) {
  std::int64_t below = 1, above = size;
  for (std::int64_t one = 1; one <= size / one; ++one) {
    if (size % one != 0) continue;
    for (const std::int64_t each : {one, size / one}) {
      if (each <= value) below = std::max(below, each);
      if (each >= value) above = std::min(above, each);
    }
  }
  if (below == above || value > size) return std::to_string(below);
  return std::to_string(below) + " or " + std::to_string(above);
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

}  // namespace zl
