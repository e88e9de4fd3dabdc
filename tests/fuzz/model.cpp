// Model files and configurations of Hugging Face; what is read reads back as the same.
#include "scenarios/files/model_file.h"

#include <nlohmann/json.hpp>

#include "scenarios/files/import_huggingface.h"
#include "scenarios/report/show.h"
#include "tests/fuzz/fuzz.h"

namespace {

void check_round_trip(const zl::ModelConfig& model) {
  const zl::Json written = zl::model_to_json(model);
  zl::show_model(model);
  const bool taken = zl::fuzz::takes([&] {
    const zl::Json again = zl::model_to_json(zl::model_from_json(written, "again"));
    zl::fuzz::require(again == written, "another model: " + zl::to_text(written));
  });
  zl::fuzz::require(taken, "what was written is refused: " + zl::to_text(written));
}

}  // namespace

ZL_FUZZ_TARGET(model) {
  const std::string_view text = zl::fuzz::text_of(data, size);
  zl::ModelConfig model;
  if (zl::fuzz::takes([&] { model = zl::import_huggingface(text, "config.json"); })) {
    check_round_trip(model);
  }
  if (zl::fuzz::takes(
          [&] { model = zl::model_from_json(zl::parse_json(text, "input.json"), "input"); })) {
    check_round_trip(model);
  }
  return 0;
}
