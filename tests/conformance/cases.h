// The conformance table: at least one case per op of the variant. A case makes an op on fresh
// random tensors of one storage type.
// Ownership: the table owns its cases. Threads: used by one thread.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "core/ops/op.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/workspace.h"

namespace zl::test {

struct Case {
  std::string name;
  std::vector<DType> types;
  std::function<Op(Workspace&, DType)> make;
  double tolerance = 1;  // times the tolerance of the output's type
  double scale = 0;      // size of the terms of an output that may all cancel (a loss of 0)
};

// GoogleTest prints a case by its name.
inline void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

inline const std::vector<DType> kFloats = {DType::f64, DType::f32, DType::bf16, DType::f16};

inline const std::vector<DType> kHalves = {DType::bf16, DType::f16};

// The type of statistics and gradients that go with storage type `dtype`.
inline DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

template <class T>
using Tag = std::type_identity<T>;

// One overload per op: a new op without one does not compile (see all_cases).
std::vector<Case> cases_of(Tag<Gemm>);
std::vector<Case> cases_of(Tag<BiasBackward>);
std::vector<Case> cases_of(Tag<EmbeddingForward>);
std::vector<Case> cases_of(Tag<EmbeddingBackward>);
std::vector<Case> cases_of(Tag<NormForward>);
std::vector<Case> cases_of(Tag<NormBackward>);
std::vector<Case> cases_of(Tag<Rope>);
std::vector<Case> cases_of(Tag<AttentionForward>);
std::vector<Case> cases_of(Tag<AttentionBackward>);
std::vector<Case> cases_of(Tag<ActivationForward>);
std::vector<Case> cases_of(Tag<ActivationBackward>);
std::vector<Case> cases_of(Tag<CrossEntropy>);
std::vector<Case> cases_of(Tag<Sum>);
std::vector<Case> cases_of(Tag<Fill>);
std::vector<Case> cases_of(Tag<Axpy>);
std::vector<Case> cases_of(Tag<Dropout>);
std::vector<Case> cases_of(Tag<RandomNormal>);
std::vector<Case> cases_of(Tag<AbsMax>);
std::vector<Case> cases_of(Tag<SquaredSum>);
std::vector<Case> cases_of(Tag<AdamStep>);
std::vector<Case> cases_of(Tag<SgdStep>);
std::vector<Case> cases_of(Tag<LambUpdate>);
std::vector<Case> cases_of(Tag<LambApply>);
std::vector<Case> cases_of(Tag<SignCompress>);
std::vector<Case> cases_of(Tag<SignAverage>);
std::vector<Case> cases_of(Tag<SignUnpack>);
std::vector<Case> cases_of(Tag<MomentumStep>);
std::vector<Case> cases_of(Tag<FrozenAdamStep>);
std::vector<Case> cases_of(Tag<LocalAdamStep>);
std::vector<Case> cases_of(Tag<DenominatorScale>);
std::vector<Case> cases_of(Tag<SharedAdamStep>);
std::vector<Case> cases_of(Tag<OnebitLambUpdate>);
std::vector<Case> cases_of(Tag<OnebitLambTrust>);
std::vector<Case> cases_of(Tag<ScaledStep>);
std::vector<Case> cases_of(Tag<BlockQuantize>);
std::vector<Case> cases_of(Tag<BlockDequantize>);
std::vector<Case> cases_of(Tag<BlockSum>);

// One trial of a case on fresh random tensors: every harness's results against the reference, and
// bit for bit against the first harness's. Reports to GoogleTest; returns the largest share of the
// tolerance that an element took.
double run_case(const Case& one, DType dtype, std::uint64_t seed,
                const std::vector<std::unique_ptr<Harness>>& harnesses);

struct OpCases {
  const char* op;
  std::vector<Case> cases;
};

template <class... Ops>
std::vector<OpCases> cases_of_each(Tag<std::variant<Ops...>>) {
  return {{Ops::kName, cases_of(Tag<Ops>{})}...};
}

inline std::vector<OpCases> all_cases() { return cases_of_each(Tag<Op>{}); }

}  // namespace zl::test
