// Arguments and scripts of Megatron-LM.
#include "scenarios/launch/megatron.h"

#include "tests/fuzz/imports.h"

ZL_FUZZ_TARGET(megatron) {
  const std::string_view text = zl::fuzz::text_of(data, size);
  zl::ImportContext context = zl::fuzz::import_context(size);
  context.infer_ranks = size % 2 == 0;
  zl::fuzz::check_import(context, [&] { return zl::import_megatron(text, "input.sh", context); });
  return 0;
}
