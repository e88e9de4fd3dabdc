// Byte counts and bandwidths as people write them.
#include "core/base/bytes.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

TEST(Bytes, CountsWithDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("1048576B"), 1048576);
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5 KB"), 1500);
  for (const char* bad : {"", "GiB", "-1", "16 parsecs", "4.1Gbit"}) {
    EXPECT_THROW(parse_bytes(bad), Error) << bad;
  }
}

std::string problem(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Bytes, ABareNumberIsRefusedWithWhatItLikelyMeans) {
  EXPECT_EQ(problem([] { parse_bytes("80"); }), "80 has no unit; 80GiB?");
  EXPECT_EQ(problem([] { parse_bytes("40960"); }), "40960 has no unit; 40960MiB?");
  EXPECT_EQ(problem([] { parse_bytes("1048576"); }), "1048576 has no unit; 1048576B?");
  EXPECT_EQ(problem([] { parse_bandwidth("100"); }), "100 has no unit; 100Gbit?");
}

TEST(Counts, ThousandsOfTokensAreOf1024) {
  EXPECT_EQ(parse_count("8192", 1024), 8192);
  EXPECT_EQ(parse_count("8k", 1024), 8192);
  EXPECT_EQ(parse_count("2K", 1000), 2000);
  EXPECT_EQ(parse_count("1m", 1000), 1'000'000);
  EXPECT_EQ(parse_count("-3", 1000), -3);
  for (const char* bad : {"", "k", "8kk", "1.5k", "8 k", "9223372036854775807k"}) {
    EXPECT_THROW(parse_count(bad, 1000), Error) << bad;
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
