// The seed of tests that draw their inputs anew in every run. Ownership: a value. Threads: any.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace zl::test {

// Of this process: ZL_TEST_SEED, else fresh; printed once.
inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("ZL_TEST_SEED");
    const std::uint64_t chosen =
        given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::cout << "ZL_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return seed;
}

}  // namespace zl::test
