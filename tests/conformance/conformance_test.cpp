// Every op of the variant against the float64 reference, on fresh random inputs, with bit-equal
// results on every harness.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/conformance/cases.h"
#include "tests/conformance/reference.h"

namespace zl::test {
namespace {

// Trials of each case and type; ZL_TEST_ROUNDS lowers it where a tool makes ops slow.
int rounds() {
  const char* given = std::getenv("ZL_TEST_ROUNDS");
  return given == nullptr ? 6 : std::max(1, std::atoi(given));
}

double unit_error(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-13;
    case DType::f32:
      return 2e-6;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0;
  }
}

// An op's tensors before it ran, and what they should hold after.
struct Trial {
  std::vector<Operand> operands;
  std::vector<TensorView> before, expected;  // of each operand; expected in f64
};

// Position of the view with this address; views.size() if none.
std::size_t index_of(const std::vector<TensorView>& views, const TensorView& view) {
  std::size_t i = 0;
  while (i < views.size() && views[i].data != view.data) ++i;
  return i;
}

// The same op in f64 on copies of its tensors, run by the reference.
Trial expect(Workspace& w, const Op& op) {
  Trial trial;
  std::vector<TensorView> given;
  trial.operands = operands_of(op);
  for (const Operand& operand : trial.operands) {
    given.push_back(operand.view);
    trial.before.push_back(w.copy(operand.view));
    trial.expected.push_back(w.widened(operand.view));
  }
  Op oracle = op;
  remap(oracle, [&](const TensorView& view) {
    return trial.expected[index_of(given, view)].reshaped(view.shape);
  });
  run_reference(oracle, [&](const TensorView& view, double value) {
    return rounded(given[index_of(trial.expected, view)].dtype, value);
  });
  return trial;
}

double rms(const TensorView& x, std::int64_t first, std::int64_t count) {
  double square = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const double value = get(x, i);
    if (std::isfinite(value)) square += value * value / static_cast<double>(count);
  }
  return std::sqrt(square);
}

// Fails unless |got - want| <= tolerance (|want| + scale) everywhere, where scale is the rms of the
// tensor or of the element's row, whichever is larger: rows differ in size (the first queries of
// attention have few keys), and where large terms cancel their rounding stays. Small tensors may
// have cancelled as a whole, so they are measured against the size of sums of the (unit) inputs;
// `floor` is a case's own. Returns the largest share of what was allowed.
double compare(const TensorView& got, const TensorView& want, double tolerance, double floor) {
  const std::int64_t width =
      want.shape.rank() < 2 ? want.count() : want.shape[want.shape.rank() - 1];
  const double least = std::max(rms(want, 0, want.count()), want.count() <= 20 ? 4.0 : floor);
  double scale = least, worst = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) {
    if (i % width == 0) scale = std::max(least, rms(want, i, width));
    const double expected = get(want, i), actual = get(got, i);
    if (expected == actual) continue;
    const double error = std::abs(actual - expected),
                 allowed = tolerance * (std::abs(expected) + scale);
    if (!(error <= allowed)) {  // nor where it was not written: NaN
      ADD_FAILURE() << "element " << i << " of " << name_of(got.dtype) << want.shape.text() << ": "
                    << actual << " instead of " << expected << ", allowed " << allowed;
      return HUGE_VAL;
    }
    worst = std::max(worst, error / allowed);
  }
  return worst;
}

// delta of attention is scratch: a backend may sum it up of what the output was before its
// rounding.
double unit_error_of(const Op& op, const TensorView& operand) {
  const auto* attention = std::get_if<AttentionBackward>(&op);
  const bool is_delta = attention != nullptr && operand.data == attention->delta.data;
  return unit_error(is_delta ? attention->qkv.dtype() : operand.dtype);
}

void restore(const Trial& trial) {
  for (std::size_t i = 0; i < trial.operands.size(); ++i) {
    std::memcpy(trial.operands[i].view.data, trial.before[i].data,
                static_cast<std::size_t>(trial.before[i].bytes()));
  }
}

// What the ops wrote, an empty view for each operand that they only read.
std::vector<TensorView> results(Workspace& w, const Trial& trial) {
  std::vector<TensorView> copies;
  for (const Operand& operand : trial.operands) {
    copies.push_back(operand.written ? w.copy(operand.view) : TensorView{});
  }
  return copies;
}

void expect_bits(const std::vector<TensorView>& want, const Trial& trial, const char* whose) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i].data == nullptr) continue;
    EXPECT_EQ(0, std::memcmp(want[i].data, trial.operands[i].view.data,
                             static_cast<std::size_t>(want[i].bytes())))
        << "operand " << i << " differs from " << whose << " in some bit";
  }
}

}  // namespace

double run_case(const Case& one, DType dtype, std::uint64_t seed,
                const std::vector<std::unique_ptr<Harness>>& harnesses) {
  double worst = 0;
  Workspace w(seed);
  const Op op = one.make(w, dtype);
  const Trial trial = expect(w, op);
  std::vector<TensorView> first;
  for (const auto& harness : harnesses) {
    SCOPED_TRACE(harness->name());
    restore(trial);
    run_on(*harness, op);
    for (std::size_t i = 0; i < trial.operands.size(); ++i) {
      const Operand& operand = trial.operands[i];
      if (!operand.written) continue;
      SCOPED_TRACE("operand " + std::to_string(i));
      const double tolerance = one.tolerance * unit_error_of(op, operand.view);
      worst = std::max(worst, compare(operand.view, trial.expected[i], tolerance, one.scale));
    }
    if (harness->shares_bits(op)) {
      expect_bits(first, trial, "the first harness");
    } else {
      const std::vector<TensorView> before = results(w, trial);
      restore(trial);
      run_on(*harness, op);
      expect_bits(before, trial, "the run before");
    }
    if (first.empty()) first = results(w, trial);
  }
  return worst;
}

namespace {

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, MatchesReference) {
  const Case& one = GetParam();
  double worst = 0;
  for (const DType dtype : one.types) {
    for (int round = 0; round < rounds(); ++round) {
      const std::uint64_t seed = test_seed() + static_cast<std::uint64_t>(round);
      SCOPED_TRACE(std::string(name_of(dtype)) + ", round " + std::to_string(round) +
                   ", ZL_TEST_SEED=" + std::to_string(test_seed()));
      worst = std::max(worst, run_case(one, dtype, seed, make_harnesses()));
      if (HasFailure()) return;
    }
  }
  RecordProperty("of_tolerance", std::to_string(worst));
}

std::vector<Case> table() {
  std::vector<Case> flat;
  for (const OpCases& op : all_cases()) flat.insert(flat.end(), op.cases.begin(), op.cases.end());
  return flat;
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, testing::ValuesIn(table()),
                         [](const auto& p) { return p.param.name; });

TEST(ConformanceTable, EveryOpHasACase) {
  const std::vector<OpCases> ops = all_cases();
  EXPECT_EQ(ops.size(), kOpKinds);
  for (const OpCases& op : ops) EXPECT_FALSE(op.cases.empty()) << op.op;
}

}  // namespace
}  // namespace zl::test
