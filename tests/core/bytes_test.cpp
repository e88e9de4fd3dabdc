// Byte counts and bandwidths as people write them.
#include "core/base/bytes.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace zl {
namespace {

TEST(Bytes, CountsWithDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("1048576"), 1048576);
  EXPECT_EQ(parse_bytes("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5 KB"), 1500);
  for (const char* bad : {"", "GiB", "-1", "16 parsecs", "4.1Gbit"}) {
    EXPECT_THROW(parse_bytes(bad), Error) << bad;
  }
}

TEST(Bandwidth, BitsAreAnEighthOfBytes) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("4.1Gbit"), 4.1e9 / 8);
  EXPECT_DOUBLE_EQ(parse_bandwidth("100 Mbit"), 12.5e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("8bit"), 1);
  EXPECT_DOUBLE_EQ(parse_bandwidth("12.5GB"), 12.5e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1GiB"), 0x1p30);
  for (const char* bad : {"", "fast", "0Gbit", "-4Gbit", "4Gibit", "4Gbits"}) {
    EXPECT_THROW(parse_bandwidth(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace zl
