#include "core/base/dtype.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "fp64";
    case DType::f32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "fp16";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::u16:
      return "uint16";
    case DType::u8:
      return "uint8";
  }
  return "?";
}

DType parse_dtype(std::string_view name) {
  if (name == "fp32" || name == "float32") return DType::f32;
  if (name == "bf16" || name == "bfloat16") return DType::bf16;
  if (name == "fp16" || name == "float16" || name == "half") return DType::f16;
  throw Error(ErrorCode::invalid,
              "data type '" + shortened(name) + "' is not one of fp32, bf16, fp16");
}

}  // namespace zl
