// Values that parameters begin with where these are not drawn: those of a file, say.
// Ownership: an InitialWeights refers to its source. Threads: read() may run on many at once.
#pragma once

#include <cstdint>
#include <span>

namespace zl {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Whether it has the parameter; what it has not is drawn by the seed.
  virtual bool has(int /*parameter*/) const { return true; }
  // The fp32 values of elements [begin, begin + out.size()), row by row, of the whole parameter
  // with this number (ParameterSpec::number). Throws Error naming the file that cannot be read.
  virtual void read(int parameter, std::int64_t begin, std::span<float> out) const = 0;
};

// What parameters begin with: the values of `source` or, without one, random numbers keyed by the
// seed.
struct InitialWeights {
  // A seed alone is one of these.
  InitialWeights(std::uint64_t key, const WeightSource* values = nullptr)
      : seed(key), source(values) {}

  std::uint64_t seed;
  const WeightSource* source;
};

}  // namespace zl
