// DeepSpeed files: importing what a strategy is written as gives the same strategy.
#include "tests/fuzz/imports.h"

ZL_FUZZ_TARGET(deepspeed) {
  const std::string_view text = zl::fuzz::text_of(data, size);
  const zl::ImportContext context = zl::fuzz::import_context(size);
  zl::fuzz::takes([&] { zl::inspect_deepspeed(text, "input.json", context); });
  zl::fuzz::check_import(context,
                         [&] { return zl::import_deepspeed(text, "input.json", context); });
  return 0;
}
