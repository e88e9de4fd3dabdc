// JSON Lines with texts and labels.
#include "scenarios/run/text_lines.h"

#include "tests/fuzz/fuzz.h"

ZL_FUZZ_TARGET(lines) {
  const std::string path = zl::fuzz::files().write("lines.jsonl", zl::fuzz::text_of(data, size));
  zl::fuzz::takes([&] { zl::read_text_lines(path, {.any = size % 2 == 0, .most = 3}); });
  return 0;
}
