#include "scenarios/planner/plan_words.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/planner/grid.h"

namespace zl {
namespace {

struct Scale {
  std::string_view unit;
  double factor = 1;
};

// Of a number above 0 and one of the units; an empty unit comes last.
std::optional<double> quantity(std::string_view text, std::span<const Scale> scales) {
  for (const Scale& scale : scales) {
    if (!text.ends_with(scale.unit)) continue;
    const auto number = real_in(text.substr(0, text.size() - scale.unit.size()));
    if (number && *number > 0) return *number * scale.factor;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::usage, "\"" + shortened(text) + "\" " + why);
}

constexpr Scale kTokens[] = {{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"", 1}};
constexpr Scale kPrice[] = {{"/gpu-hour", 1}};
constexpr Scale kSeconds[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
constexpr Scale kShare[] = {{"%", 0.01}};
constexpr Scale kTimes[] = {{"x", 1}};

}  // namespace

double parse_tokens(const std::string& text) {
  const auto tokens = quantity(text, kTokens);
  if (!tokens) refuse(text, "is no number of tokens; write 15T, 300B or 2.5e9");
  return *tokens;
}

double parse_price(const std::string& text) {
  const auto price = quantity(text, kPrice);
  if (!price) refuse(text, "is no price with its unit; write 2.5/gpu-hour");
  return *price;
}

void parse_failures(const std::string& text, RobustnessQuestion& question) {
  for (const std::string& part : listed_values(text)) {
    const std::size_t at = std::min(part.find('='), part.size());
    const std::string key = part.substr(0, at);
    const double seconds =
        quantity(part.substr(std::min(at + 1, part.size())), kSeconds).value_or(0);
    if (seconds > 0 && key == "mtbf") {
      question.mean_between_failures = seconds;
    } else if (seconds > 0 && key == "restart") {
      question.restart_seconds = seconds;
    } else {
      refuse(part, "is not mtbf=50000h (of one GPU) or restart=10m, with s, m, h or d");
    }
  }
  if (question.mean_between_failures <= 0) refuse(text, "does not say how often: mtbf=50000h");
}

void parse_stragglers(const std::string& text, RobustnessQuestion& question) {
  const std::string_view all = text;
  const std::size_t at = std::min(all.find(':'), all.size());
  const double share = quantity(all.substr(0, at), kShare).value_or(0);
  const double slowdown = quantity(all.substr(std::min(at + 1, all.size())), kTimes).value_or(0);
  if (share <= 0 || share > 1 || slowdown < 1) {
    refuse(text, "is not such as 1%:1.2x: so many of a hundred GPUs, so many times as long");
  }
  question.slow_share = share;
  question.slowdown = slowdown;
}

}  // namespace zl
