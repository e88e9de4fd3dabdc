// An import is killed, or its disk fails it, at each operation on its files in turn: what is there
// is whole, a config stands only beside all the rest, and the next import completes it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/checkpoint/safetensors.h"
#include "core/data/tokenizer.h"
#include "scenarios/files/import_gguf.h"
#include "tests/scenarios/gguf_writer.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

int g_operations_left = 0;

int kill_at_the_last() {
  if (--g_operations_left == 0) raise(SIGKILL);
  return 0;
}
int fail_at_the_last() { return --g_operations_left == 0 ? ENOSPC : 0; }

class InterruptedImport : public testing::Test {
 protected:
  InterruptedImport() {
    test::GgufWriter file = test::tiny_gguf("llama");
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    file.texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
    file.texts("tokenizer.ggml.merges", {"a b"});
    file.save(file_);
  }

  // Whether the import got to operation `n` and was killed there.
  bool killed_at(int n) const {
    const pid_t child = ::fork();
    if (child == 0) {
      g_operations_left = n;
      set_file_fault(&kill_at_the_last);
      import_gguf(file_, out_, DType::f32, true);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }

  // Whether it got there; it may do without an operation, such as the flush of a folder.
  bool failed_at(int n) const {
    g_operations_left = n;
    set_file_fault(&fail_at_the_last);
    try {
      import_gguf(file_, out_, DType::f32, true);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::failed);
    }
    set_file_fault(nullptr);
    return g_operations_left <= 0;
  }

  void expect_whole_parts() const {
    const fs::path out(out_);
    if (fs::exists(out / "model.safetensors")) {
      EXPECT_EQ(read_safetensors((out / "model.safetensors").string()).tensors.size(), 11u);
    }
    if (fs::exists(out / "tokenizer.json")) {
      EXPECT_EQ(load_tokenizer((out / "tokenizer.json").string())->vocab(), 3);
    }
    if (fs::exists(out / "config.json")) {
      EXPECT_TRUE(fs::exists(out / "model.safetensors"));
      EXPECT_TRUE(fs::exists(out / "tokenizer_config.json"));
    }
  }

  void expect_completed() const {
    import_gguf(file_, out_, DType::f32, true);
    expect_whole_parts();
    EXPECT_TRUE(fs::exists(fs::path(out_) / "config.json"));
    fs::remove_all(out_);
  }

  test::TempFolder folder_;
  const std::string file_ = (folder_ / "x.gguf").string();
  const std::string out_ = (folder_ / "out").string();
};

TEST_F(InterruptedImport, KilledAnywhere) {
  int operations = 1;
  for (; killed_at(operations); ++operations) {
    expect_whole_parts();
    expect_completed();
  }
  EXPECT_GT(operations, 20) << "too few operations were looked at";
}

TEST_F(InterruptedImport, AFullDiskAnywhere) {
  int operations = 1;
  for (; failed_at(operations); ++operations) {
    expect_whole_parts();
    expect_completed();
  }
  EXPECT_GT(operations, 20) << "too few operations were looked at";
}

}  // namespace
}  // namespace zl
