// GGUF files: what is imported can be read.
#include "core/checkpoint/gguf.h"

#include "core/checkpoint/safetensors.h"
#include "core/data/tokenizer.h"
#include "scenarios/files/import_gguf.h"
#include "tests/fuzz/fuzz.h"

ZL_FUZZ_TARGET(gguf) {
  const zl::fuzz::Files& files = zl::fuzz::files();
  const std::string path = files.write("model.gguf", zl::fuzz::text_of(data, size));
  zl::fuzz::takes([&] {
    const std::string folder = files.path("imported");
    const zl::GgufImport done =
        zl::import_gguf(path, folder, size % 2 == 0 ? zl::DType::f32 : zl::DType::bf16, true);
    const zl::SafetensorsFile weights = zl::read_safetensors(folder + "/model.safetensors");
    zl::fuzz::require(static_cast<std::int64_t>(weights.tensors.size()) == done.tensors,
                      "other tensors");
    if (done.has_tokenizer) zl::load_tokenizer(folder)->encode("In the beginning");
  });
  return 0;
}
