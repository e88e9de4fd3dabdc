#include "scenarios/cli/run_choice.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl::cli {

std::vector<std::int64_t> run_ids(const std::string& text) {
  std::vector<std::int64_t> ids;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::int64_t id = integer_in(word).value_or(0);
    if (id < 1) {
      throw Error(ErrorCode::usage, "\"" + shortened(word) +
                                        "\" is no id of a run, such as 12 or 3,5,9; `zerolab runs` "
                                        "lists them");
    }
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  if (ids.empty()) throw Error(ErrorCode::usage, "no id of a run, such as 12 or 3,5,9");
  return ids;
}

std::string moment(const std::string& text, const std::string& option) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddZ";
  std::string time = text;
  std::replace(time.begin(), time.end(), ' ', 'T');
  bool fits = time.size() != 1 && time.size() <= kShape.size();
  for (std::size_t i = 0; fits && i < time.size(); ++i) {
    const bool digit = time[i] >= '0' && time[i] <= '9';
    fits = kShape[i] == 'd' ? digit : time[i] == kShape[i];
  }
  if (fits) return time;
  throw Error(ErrorCode::usage, option + ": \"" + shortened(text) +
                                    "\" is no day or time such as 2026-11-22 or 2026-11-22T13:46");
}

}  // namespace zl::cli
