// What the dashboard is to the loader; see tests/cli/hardening_test.cpp.
#include "tests/cli/elf.h"

TEST(Hardening, OfTheDashboard) { zl::elf::expect_hardened(ZL_GUI_PROGRAM); }
