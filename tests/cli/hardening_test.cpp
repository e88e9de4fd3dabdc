// What the program is to the loader: no library comes from the working directory.
#include "tests/cli/elf.h"

namespace zl::elf {
namespace {

TEST(Hardening, OfTheProgram) { expect_hardened(ZL_PROGRAM); }

TEST(Hardening, AnEmptyEntryIsSeen) {
  std::vector<std::string> entries;
  add_entries("/a::b:", entries);
  EXPECT_EQ(entries, (std::vector<std::string>{"/a", "", "b", ""}));
}

}  // namespace
}  // namespace zl::elf
