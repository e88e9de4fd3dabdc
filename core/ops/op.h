// The ops of the training core as values: one plain struct per op in one variant.
// A device executes or records them. Adding an op: the struct in its family header, its name in
// op_list.h, `execute` in a .cpp or .cu of each backend that computes (cpu, cuda), and in
// tests/conformance its cases and the float64 reference. What is missing does not link.
//
// Every op struct has
//   static constexpr const char* kName
//   void validate() const            throws Error{failed} naming the op and the wrong shape or type
//   Cost cost() const                FLOPs, bytes, shape
//   template <F> void visit(F&& f)   f(const TensorView&, Access) for each tensor it touches
// An empty TensorView means "absent" where a field's comment allows it.
#pragma once

#include "core/ops/activation.h"
#include "core/ops/attention.h"
#include "core/ops/compress.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/head_norm.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/onebit_lamb.h"
#include "core/ops/op_fwd.h"
#include "core/ops/optimizer.h"
#include "core/ops/quantize.h"

namespace zl {}  // namespace zl
