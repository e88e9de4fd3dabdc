// Whatever happened to the files of the newest step, a run goes on from the one before with the
// same bits, and says why.
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>

#include "tests/engine/checkpoints.h"
#include "tests/seed.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 2;
constexpr std::int64_t kAll = 8, kNewest = 6, kBefore = 4;

Strategy small() { return strategy(1, DType::bf16); }

// A folder with whole checkpoints of steps 4 and 6, as often as wanted, and what the whole run
// gives.
class DamagedCheckpoint : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    source_ = new TempFolder(in_memory());
    run_cpu(kRanks, smallest_gpt2(), small(), kept_in((*source_ / "run").string(), kNewest));
    whole_ = new Finished(run_cpu(kRanks, smallest_gpt2(), small(), steps(kAll)));
  }
  static void TearDownTestSuite() {
    delete source_;
    delete whole_;
  }

  void restore_folder() {
    fs::remove_all(run());
    fs::copy(*source_ / "run", run(), fs::copy_options::recursive);
  }
  std::string run() const { return (folder_ / "run").string(); }
  std::string file(int rank, std::int64_t step = kNewest) const {
    return checkpoint_file(run(), step, rank, kRanks);
  }
  std::string manifest(std::int64_t step = kNewest) const { return manifest_file(run(), step); }

  // Returns what was said of the step that was passed over.
  std::string expect_falls_back(const std::string& what) {
    std::string said;
    try {
      const Finished rest = run_cpu(kRanks, smallest_gpt2(), small(), kept_in(run(), kAll));
      EXPECT_EQ(rest.result.first_step, kBefore) << what;
      EXPECT_EQ(rest.weights, whole_->weights) << what;
      for (const std::string& warning : rest.result.warnings) said += warning + "\n";
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
    return said;
  }

  void expect_passed_over(const std::string& why, const std::function<void()>& damage) {
    restore_folder();
    damage();
    EXPECT_HAS(expect_falls_back(why), why);
    EXPECT_EQ(newest_step(run()), kAll);
    // Once more: what was put aside is not in the way, and the step is written anew.
    EXPECT_TRUE(fs::exists(run() + "/step-00000006.passed-over")) << why;
  }

  static TempFolder* source_;
  static Finished* whole_;
  TempFolder folder_{in_memory()};
};
TempFolder* DamagedCheckpoint::source_ = nullptr;
Finished* DamagedCheckpoint::whole_ = nullptr;

void flip(const std::string& path, std::uintmax_t at, int mask) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto place = static_cast<std::streamoff>(at);
  const int byte = file.seekg(place).get();
  file.seekp(place).put(static_cast<char>(byte ^ mask));
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uint64_t header_length(const std::string& path) {
  std::uint64_t length = 0;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&length), sizeof length);
  return length;
}

TEST_F(DamagedCheckpoint, AFlippedByteAnywhereIsPassedOver) {
  restore_folder();
  for (const std::string& path : {file(0), file(1), manifest()}) {
    const std::uintmax_t header = 8 + header_length(path), all = fs::file_size(path);
    // Primes: every part of the header, and every bit, is met.
    std::vector<std::uintmax_t> places{0, 1, 3, 7, all - 1};
    for (std::uintmax_t at = 8; at < header; at += 13) places.push_back(at);
    for (std::uintmax_t at = header; at < all; at += all / 5 + 1) places.push_back(at);
    int bit = 0;
    for (const std::uintmax_t at : places) {
      restore_folder();
      flip(path, at, 1 << (bit++ * 3 % 8));
      const std::string said = expect_falls_back(path + ", byte " + std::to_string(at));
      EXPECT_HAS(said, "step 6 was passed over");
    }
  }
}

// As a flipped byte in its name would.
TEST_F(DamagedCheckpoint, AFileWithoutItsChecksumIsPassedOver) {
  for (const std::string& path : {file(1), manifest()}) {
    restore_folder();
    flip(path, contents(path).find("zerolab.crc32c"), 1);
    EXPECT_HAS(expect_falls_back(path), "it has no checksum");
  }
}

TEST_F(DamagedCheckpoint, FilesInThePlaceOfOthersAreNamed) {
  expect_passed_over("rank-0-of-2.safetensors: its rank is 1, not 0", [&] {
    fs::rename(file(0), run() + "/kept");
    fs::rename(file(1), file(0));
    fs::rename(run() + "/kept", file(1));
  });
  expect_passed_over("rank-1-of-2.safetensors: its step is 4, not 6", [&] {
    fs::copy_file(file(1, kBefore), file(1), fs::copy_options::overwrite_existing);
  });
  expect_passed_over("manifest.safetensors: its step is 4, not 6", [&] {
    fs::copy_file(manifest(kBefore), manifest(), fs::copy_options::overwrite_existing);
  });
  expect_passed_over("is not what the step was completed with", [&] {
    // The same step of the same run, but not of the time that the manifest is of.
    SafetensorsFile other = read_safetensors(file(1));
    other.data.back() ^= std::byte{1};
    write_safetensors(file(1), other.tensors, other.metadata);
  });
}

TEST_F(DamagedCheckpoint, WhatIsNoFileIsNamedAndNotWaitedFor) {
  for (const std::string& path : {file(0), file(1), manifest()}) {
    const auto instead = [&](const std::function<void()>& make) {
      return [&path, make] {
        fs::remove(path);
        make();
      };
    };
    expect_passed_over("Too many levels of symbolic links",
                       instead([&] { fs::create_symlink(path, path); }));
    expect_passed_over("is a FIFO, not a regular file",
                       instead([&] { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }));
    expect_passed_over("is a folder, not a regular file",
                       instead([&] { fs::create_directories(path + "/in"); }));
    expect_passed_over("is a device, not a regular file",
                       instead([&] { fs::create_symlink("/dev/zero", path); }));
  }
  const std::string step = run() + "/step-00000006";
  expect_passed_over("Too many levels of symbolic links", [&] {
    fs::remove_all(step);
    fs::create_symlink(step, step);
  });
  expect_passed_over("Not a directory", [&] {
    fs::remove_all(step);
    std::ofstream(step) << "a file";
  });
}

TEST_F(DamagedCheckpoint, MissingCutAndLengthenedFilesAreNamed) {
  expect_passed_over("rank-1-of-2.safetensors: cannot open it", [&] { fs::remove(file(1)); });
  for (const std::string& path : {file(0), file(1), manifest()}) {
    for (const int share : {0, 1, 3}) {
      expect_passed_over(path + ": ",
                         [&] { fs::resize_file(path, fs::file_size(path) * share / 4); });
    }
    expect_passed_over("7 bytes follow the last tensor",
                       [&] { fs::resize_file(path, fs::file_size(path) + 7); });
  }
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string damaged(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const std::size_t at = below(bytes.size());
  switch (below(5)) {
    case 0:
      for (std::size_t flips = 1 + below(8); flips > 0; --flips) {
        bytes[below(bytes.size())] ^= static_cast<char>(1U << below(8));
      }
      return bytes;
    case 1:  // what a disk lost
      return bytes.replace(at, std::min<std::size_t>(bytes.size() - at, 1 + below(4096)),
                           std::min<std::size_t>(bytes.size() - at, 1 + below(4096)), '\0');
    case 2:
      return bytes.substr(0, at);
    case 3:
      return bytes + std::string(1 + below(100), static_cast<char>(below(256)));
    default:  // two places exchanged
      std::swap(bytes[at], bytes[below(bytes.size())]);
      return bytes;
  }
}

// ZL_TEST_RUNS: how many.
TEST_F(DamagedCheckpoint, WhateverIsDrawnIsPassedOver) {
  const char* given = std::getenv("ZL_TEST_RUNS");
  const int runs = given == nullptr ? 20 : std::max(1, std::atoi(given));
  std::mt19937_64 random(test_seed());
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    restore_folder();
    const std::vector<std::string> files{file(0), file(1), manifest()};
    const std::string& path = files[random() % files.size()];
    const std::string whole = contents(path);
    std::string bytes = whole;
    while (bytes == whole) bytes = damaged(whole, random);
    put(path, bytes);
    expect_falls_back(path + ", ZL_TEST_SEED=" + std::to_string(test_seed()) + ", damage " +
                      std::to_string(run));
  }
}

TEST_F(DamagedCheckpoint, AStepWithoutItsManifestWasNeverCompletedAndGoes) {
  restore_folder();
  fs::remove(manifest());
  std::ofstream(run() + "/step-00000004/rank-0-of-2.safetensors.tmp123") << "half";
  std::ofstream(run() + "/step-00000004/manifest.safetensors.tmp4") << "half";
  std::ofstream(run() + "/step-00000004/mine") << "stays";
  const std::string said = expect_falls_back("no manifest");
  EXPECT_EQ(said.find("passed over"), std::string::npos) << said;
  EXPECT_EQ(names_in(run()),
            (std::vector<std::string>{"step-00000004", "step-00000006", "step-00000008"}));
  EXPECT_EQ(names_in(run() + "/step-00000004"), std::vector<std::string>{"mine"});
}

TEST_F(DamagedCheckpoint, WhereNoStepCanBeUsedAllAreNamedWithTheCommandThatClears) {
  restore_folder();
  flip(file(1), fs::file_size(file(1)) - 1, 1);
  fs::remove(file(0, kBefore));
  const std::string refused = failure_of(kRanks, smallest_gpt2(), small(), kept_in(run(), kAll));
  EXPECT_HAS(refused, run() + ": no checkpoint there can be resumed: step 6: " + file(1));
  EXPECT_HAS(refused, "; step 4: " + file(0, kBefore) + ": cannot open it");
  EXPECT_HAS(refused, "rm -r '" + run() + "'");
  EXPECT_EQ(names_in(run()), (std::vector<std::string>{"step-00000004", "step-00000006"}));
}

TEST_F(DamagedCheckpoint, WhatAnOlderProgramKeptIsNotRemoved) {
  fs::create_directories(run() + "/step-00000002");
  write_safetensors(file(0, 2), {}, {{"zerolab.identity", "{}"}});
  const std::string refused = failure_of(kRanks, smallest_gpt2(), small(), kept_in(run(), kAll));
  EXPECT_HAS(refused, "step-00000002: was kept by an older zerolab");
  EXPECT_HAS(refused, "rm -r '" + run() + "'");
  EXPECT_TRUE(fs::exists(file(0, 2)));
}

}  // namespace
}  // namespace zl::test
