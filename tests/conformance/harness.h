// What the conformance suite needs of a backend: memory it can fill and read, and running an op.
// Ownership: a Harness owns what it allocates until release. Threads: used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace zl::test {

class Harness {
 public:
  virtual ~Harness() = default;
  virtual std::string name() const = 0;
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  virtual void release(std::byte* memory) = 0;
  virtual void upload(std::byte* destination, const std::byte* source, std::int64_t bytes) = 0;
  virtual void download(std::byte* destination, const std::byte* source, std::int64_t bytes) = 0;
  virtual void run(const Op& op) = 0;  // done on return
  // Whether `op` has the bits that the other harnesses of make_harnesses() give it. Where it has
  // not, it still has the same ones at every run.
  virtual bool shares_bits(const Op&) const { return true; }
};

// The backend under test at several thread counts (or other settings that must not change a bit of
// the result). Defined by the program that links the table.
std::vector<std::unique_ptr<Harness>> make_harnesses();

}  // namespace zl::test
