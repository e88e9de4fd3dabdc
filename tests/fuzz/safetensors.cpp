// Safetensors files: what is read can be written, and reads back with the same tensors. The first
// byte may set the header's length right, which random bytes hardly ever hit.
#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/fuzz.h"

namespace {

void set_header_length(std::string& bytes, std::uint64_t length) {
  if (bytes.size() >= sizeof length) std::memcpy(bytes.data(), &length, sizeof length);
}

}  // namespace

ZL_FUZZ_TARGET(safetensors) {
  if (size < 10) return 0;
  std::string bytes(zl::fuzz::text_of(data + 1, size - 1));
  const std::size_t brace = bytes.rfind('}');
  if (data[0] % 4 != 0 && brace != std::string::npos && brace >= 8) {
    set_header_length(bytes, brace + 1 - 8);
  }
  const std::string path = zl::fuzz::files().write("a.safetensors", bytes);
  zl::fuzz::takes([&] {
    const zl::SafetensorsFile file = zl::read_safetensors(path);
    const std::string copy = zl::fuzz::files().path("b.safetensors");
    zl::write_safetensors(copy, file.tensors, file.metadata);
    const zl::SafetensorsFile again = zl::read_safetensors(copy);
    zl::fuzz::require(again.tensors.size() == file.tensors.size(), "other tensors");
    zl::fuzz::require(again.metadata == file.metadata, "other metadata");
    for (const zl::NamedTensor& tensor : file.tensors) {
      const auto same = again.at(tensor.name).bytes;
      zl::fuzz::require(std::ranges::equal(tensor.bytes, same), "other bytes");
    }
  });
  return 0;
}
