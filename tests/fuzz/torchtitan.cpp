// TOML of torchtitan.
#include "scenarios/launch/torchtitan.h"

#include "tests/fuzz/imports.h"

ZL_FUZZ_TARGET(torchtitan) {
  const std::string_view text = zl::fuzz::text_of(data, size);
  zl::ImportContext context = zl::fuzz::import_context(size);
  context.infer_ranks = size % 2 == 0;
  zl::fuzz::check_import(context,
                         [&] { return zl::import_torchtitan(text, "input.toml", context); });
  return 0;
}
