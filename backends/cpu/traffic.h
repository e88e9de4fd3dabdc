// Bytes that a transport has really moved between ranks, by what they serve: counted where they
// move, for tests that hold the ledger's wire bytes (a formula) against them.
// Ownership: a value. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/collective_kind.h"

namespace zl::cpu {

class Traffic {
 public:
  void add(Purpose purpose, std::int64_t bytes) {
    (purpose == Purpose::control ? control_ : data_) += bytes;
  }
  std::int64_t bytes(Purpose purpose) const {
    return purpose == Purpose::control ? control_ : data_;
  }

 private:
  std::atomic<std::int64_t> data_{0}, control_{0};
};

}  // namespace zl::cpu
