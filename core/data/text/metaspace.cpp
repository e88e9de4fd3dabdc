#include "core/data/text/metaspace.h"

namespace zl {

Metaspace parse_metaspace(const JsonView& spec) {
  Metaspace style;
  style.mark = spec.get("replacement").text_or(style.mark);
  if (style.mark.empty()) spec.get("replacement").refuse("empty; a character is needed");
  style.split = spec.get("split").flag_or(true);
  const JsonView scheme = spec.get("prepend_scheme");
  if (scheme.is_null()) {  // older files
    if (!spec.get("add_prefix_space").flag_or(true)) style.prepend = Metaspace::Prepend::never;
    return style;
  }
  const std::string name = scheme.text();
  if (name == "first") {
    style.prepend = Metaspace::Prepend::first;
  } else if (name == "never") {
    style.prepend = Metaspace::Prepend::never;
  } else if (name != "always") {
    scheme.refuse_choice({"always", "first", "never"});
  }
  return style;
}

}  // namespace zl
