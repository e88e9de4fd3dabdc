// Everything that the coming steps of a rank depend on, by name: the walk over it that saves is the
// walk that restores.
// Ownership: refers to what it is shown. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/tensor.h"

namespace zl {

class StateArchive {
 public:
  enum class Place : std::uint8_t { device, host };

  virtual ~StateArchive() = default;
  // Whether what is shown takes the archive's values; if not, the archive takes its.
  virtual bool restores() const = 0;
  // Empty views are skipped. In host memory the host and compute streams must be idle.
  virtual void tensor(const std::string& name, const TensorView& view,
                      Place place = Place::device) = 0;
  virtual void number(const std::string& name, double& value) = 0;

  void integer(const std::string& name, std::int64_t& value) {
    auto number_of = static_cast<double>(value);  // counters stay far below 2^53
    number(name, number_of);
    value = static_cast<std::int64_t>(number_of);
  }
};

// What has state to archive.
class Archived {
 public:
  virtual ~Archived() = default;
  // Between steps: all that the coming ones depend on. Every rank must call it.
  virtual void archive(StateArchive& archive) = 0;
  virtual std::int64_t steps() const = 0;  // taken so far
};

}  // namespace zl
