#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "backends/cuda/availability.h"
#include "backends/cuda/device.h"
#include "backends/cuda/error.h"
#include "backends/cuda/library.h"
#include "tests/temp_folder.h"

namespace zl::cuda {
namespace {

namespace fs = std::filesystem;

std::string unavailable(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    return error.what();
  }
  return "no error";
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

// A Python environment with a folder of one package in it; CUDA_HOME etc. as they were afterwards.
struct SharedLibraryTest : testing::Test {
  test::TempFolder root;
  fs::path folder = root / "lib/python3.11/site-packages/nvidia/nothing/lib";
  void SetUp() override {
    fs::create_directories(folder);
    setenv("VIRTUAL_ENV", root.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("VIRTUAL_ENV"); }
};

TEST_F(SharedLibraryTest, AMissingLibraryNamesThePlacesAndTheFix) {
  const std::string text =
      unavailable([] { SharedLibrary("Nothing", "libzl_nothing.so.7", "install nothing 7"); });
  expect_parts(text, {"Nothing: libzl_nothing.so.7", "the loader's places", folder.string(),
                      "install nothing 7"});
}

TEST_F(SharedLibraryTest, AFileThatIsNoLibraryIsSaidToBeOne) {
  std::ofstream(folder / "libzl_nothing.so.7") << "not a library";
  const std::string text =
      unavailable([] { SharedLibrary("Nothing", "libzl_nothing.so.7", "install nothing 7"); });
  expect_parts(text, {(folder / "libzl_nothing.so.7").string(), "install nothing 7"});
}

TEST_F(SharedLibraryTest, FindsALibraryInAPythonEnvironmentAndMissesItsFunctions) {
  const SharedLibrary system("the C library", "libc.so.6", "");
  for (const char* source : {"/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib64/libz.so.1"}) {
    if (fs::exists(source)) fs::copy_file(source, folder / "libzl_nothing.so.7");
    if (fs::exists(source)) break;
  }
  if (!fs::exists(folder / "libzl_nothing.so.7")) GTEST_SKIP() << "no zlib to copy";
  const SharedLibrary library("Nothing", "libzl_nothing.so.7", "");
  EXPECT_EQ(library.path(), (folder / "libzl_nothing.so.7").string());
  const char* (*version)() = nullptr;
  library.bind(version, "zlibVersion");
  EXPECT_EQ(version()[0], '1');
  expect_parts(unavailable([&] { library.bind(version, "zl_no_such_function"); }),
               {"Nothing", "zl_no_such_function", "newer"});
}

TEST(LibraryFolders, ComeFromTheEnvironment) {
  const test::TempFolder root;
  fs::create_directories(root / "nvidia/nccl/lib");
  fs::create_directories(root / "lib64");
  const std::string before = std::getenv("LD_LIBRARY_PATH") ? std::getenv("LD_LIBRARY_PATH") : "";
  setenv("LD_LIBRARY_PATH", ("/nowhere:" + root.string()).c_str(), 1);
  setenv("CUDA_HOME", root.path().c_str(), 1);
  const std::vector<std::string> found = library_folders();
  setenv("LD_LIBRARY_PATH", before.c_str(), 1);
  unsetenv("CUDA_HOME");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), (root / "lib64").string());
  EXPECT_EQ(found.back(), (root / "nvidia/nccl/lib").string());
}

TEST(Availability, SaysWhatIsMissingAndTheFix) {
  const std::string& why = availability();
  if (why.empty()) {
    EXPECT_GT(device_count(), 0);
    EXPECT_EQ(describe_gpus().size(), static_cast<std::size_t>(device_count()));
    return;
  }
  EXPECT_TRUE(describe_gpus().empty());
  EXPECT_EQ(unavailable([] { Device device(0, 0); }), why);
  const bool known = why.starts_with("no NVIDIA driver") || why.starts_with("no CUDA device") ||
                     why.starts_with("the NVIDIA driver is too old") ||
                     why.starts_with("GPU 0 does not answer") || why.starts_with("cuBLASLt") ||
                     why.find("compute capability") != std::string::npos;
  EXPECT_TRUE(known) << why;
}

TEST(CudaErrors, NameTheCallAndTheReason) {
  EXPECT_NO_THROW(check(0, "cudaNothing"));
  try {
    check(700, "cudaStreamSynchronize");  // driver_types.h: cudaErrorIllegalAddress
    FAIL() << "an error code was taken for success";
  } catch (const Error& error) {
    expect_parts(error.what(), {"cudaStreamSynchronize: ", "cudaErrorIllegalAddress"});
  }
}

}  // namespace
}  // namespace zl::cuda
