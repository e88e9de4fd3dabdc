// Pickles have the bytes that Python writes (make_pickle.py).
#include "results/pickle.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

void write_numbers(PickleWriter& out) {
  out.begin_list();
  constexpr std::int64_t kOne = 1;
  for (const std::int64_t number :
       {kOne * 0, kOne * 255, kOne * 256, kOne * 65535, kOne * 65536, -kOne, kOne * -128,
        (kOne << 31) - 1, -(kOne << 31), kOne << 31, kOne << 39, -(kOne << 31) - 1,
        (kOne << 47) - 1, INT64_MAX, INT64_MIN}) {
    out.number(number);
  }
  out.end();
}

void write_nested(PickleWriter& out) {
  out.begin_dict();
  out.key("empty");
  out.begin_list();
  out.end();
  out.key("none");
  out.begin_dict();
  out.end();
  out.key("pairs");
  out.begin_list();
  out.pair(0, 0);
  out.pair(1, 70000);
  out.end();
  out.end();
}

TEST(Pickle, HasTheBytesThatPythonWrites) {
  PickleWriter out;
  out.begin_dict();
  out.key("numbers");
  write_numbers(out);
  out.key("many");
  out.begin_list();
  for (int i = 0; i < 2500; ++i) out.number(i);
  out.end();
  out.key("text");
  out.begin_list();
  out.text("");
  out.text("ü€𝄞");
  out.end();
  out.key("nested");
  write_nested(out);
  out.key("truth");
  out.begin_list();
  out.truth(true);
  out.truth(false);
  out.end();
  out.end();
  const std::string golden =
      bytes_of(std::filesystem::path(ZL_SOURCE_DIR) / "tests/results/data/golden.pickle");
  ASSERT_GT(golden.size(), 5000u);
  EXPECT_EQ(out.finish(), golden);
}

TEST(Pickle, RefusesWhatIsNotClosed) {
  PickleWriter open;
  open.begin_list();
  EXPECT_THROW(open.key("of a list"), Error);
  EXPECT_THROW(open.finish(), Error);
  PickleWriter closed;
  EXPECT_THROW(closed.end(), Error);
}

}  // namespace
}  // namespace zl::test
