// What of a plan a software cannot be told.
// Ownership: values. Threads: used by one thread.
#pragma once

#include <string>
#include <vector>

namespace zl {

class Obstacles {
 public:
  explicit Obstacles(std::string software) : software_(std::move(software)) {}

  // `constraint`: what of --constrain leaves plans without it; empty: none does.
  void add(const std::string& feature, const std::string& why, const std::string& constraint = "");
  // Error{invalid} with all of them, and the constraints together.
  void throw_if_any() const;

 private:
  std::string software_;
  std::vector<std::string> texts_, constraints_;
};

}  // namespace zl
