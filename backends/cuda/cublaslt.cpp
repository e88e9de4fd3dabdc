#include "backends/cuda/cublaslt.h"

#include <string>

#include "backends/cuda/library.h"
#include "core/base/error.h"

namespace zl::cuda {
namespace {

CublasLt load() {
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  const SharedLibrary library("cuBLASLt", "libcublasLt.so." + major,
                              "install the CUDA " + major +
                                  " toolkit or `pip install nvidia-cublas`, or name the folder in "
                                  "LD_LIBRARY_PATH");
  CublasLt table{};
  library.bind(table.get_version, "cublasLtGetVersion");
  library.bind(table.status_name, "cublasLtGetStatusName");
  library.bind(table.create, "cublasLtCreate");
  library.bind(table.destroy, "cublasLtDestroy");
  library.bind(table.desc_create, "cublasLtMatmulDescCreate");
  library.bind(table.desc_destroy, "cublasLtMatmulDescDestroy");
  library.bind(table.desc_set, "cublasLtMatmulDescSetAttribute");
  library.bind(table.desc_get, "cublasLtMatmulDescGetAttribute");
  library.bind(table.layout_create, "cublasLtMatrixLayoutCreate");
  library.bind(table.layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.bind(table.layout_get, "cublasLtMatrixLayoutGetAttribute");
  library.bind(table.preference_create, "cublasLtMatmulPreferenceCreate");
  library.bind(table.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.bind(table.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.bind(table.preference_get, "cublasLtMatmulPreferenceGetAttribute");
  library.bind(table.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.bind(table.matmul, "cublasLtMatmul");
  return table;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt table = load();
  return table;
}

}  // namespace zl::cuda
