#include "scenarios/deepspeed/release.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/text.h"

namespace zl {
namespace {

std::optional<Release> parse(std::string_view text) {
  Release release;
  for (int* part : {&release.major, &release.minor, &release.patch}) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, *part);
    if (error != std::errc() || *part < 0) return std::nullopt;
    const bool last = part == &release.patch;
    if (last != (rest == end) || (!last && *rest != '.')) return std::nullopt;
    text = std::string_view(rest, static_cast<std::size_t>(end - rest));
    if (!last) text.remove_prefix(1);
  }
  return release;
}

}  // namespace

Release read_release(Keys& keys) {
  const std::string path = "x-zerolab.deepspeed_version";
  const std::string text = keys.text(path);
  if (const std::optional<Release> release = parse(text)) return *release;
  keys.effects().reject(path, "\"" + shortened(text) + "\" is no release; write \"0.19.8\"");
  return {};
}

}  // namespace zl
