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

inline DropoutSpec dropout_if(Workspace& w, bool wanted) {
  return wanted ? w.dropout(w.uniform(0.05f, 0.6f)) : DropoutSpec{};
}

// A case maker that passes `form` on.
template <class Form, class Result>
auto with(Result (*make)(Workspace&, DType, Form), Form form) {
  return [=](Workspace& w, DType dtype) -> Op { return make(w, dtype, form); };
}

template <class T>
using Tag = std::type_identity<T>;

// One overload per op: a new op without one does not link (see all_cases).
#define ZL_CASES(T) std::vector<Case> cases_of(Tag<T>);
ZL_OPS(ZL_CASES)
#undef ZL_CASES

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
