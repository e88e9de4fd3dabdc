// The file tier: layout, round trips under every engine, checksums, generations and what the system
// refuses.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/object_file.h"
#include "core/base/crc32c.h"
#include "tests/storage/faulty_engine.h"
#include "tests/storage/object_parts.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

using StorageTest = Folder;

TEST(Crc32c, HasTheValuesOfRfc3720) {
  std::vector<std::byte> bytes(32, std::byte{0});
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x8a9136aau);
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x62a8ab43u);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x46dd794eu);
  EXPECT_EQ(crc32c(reinterpret_cast<const std::byte*>("123456789"), 9), 0xe3069283u);
}

TEST(Crc32c, IsTheSameByInstructionAndByTable) {
  const auto bytes = random_bytes(20000, 3);
  for (const std::int64_t size : {0, 1, 7, 8, 9, 100, 3071, 3072, 3073, 6145, 19999}) {
    for (const std::uint32_t start : {0u, 0x12345678u}) {
      EXPECT_EQ(crc32c(bytes.data() + 1, size, start),
                crc32c_portable(bytes.data() + 1, size, start));
    }
  }
}

TEST(ObjectLayout, IsPlainArithmetic) {
  const ObjectLayout layout({10000, 4096, 1}, 8192);
  EXPECT_EQ(layout.blocks(), 2 + 1 + 1);
  EXPECT_EQ(layout.header_bytes(), 4096);
  EXPECT_EQ(layout.part_offset(1), 4096 + 12288);
  EXPECT_EQ(layout.slot_bytes(), 4096 + 12288 + 4096 + 4096);
  EXPECT_EQ(layout.file_bytes(), 2 * layout.slot_bytes());
  EXPECT_EQ(layout.requests(), 5);
  EXPECT_EQ(ObjectLayout({std::int64_t{4096} * 2000}, 4096).header_bytes(), 8192 + 0);
  EXPECT_NE(message_of([] { ObjectLayout({8}, 5000); }).find("aio.block_size: 5000"),
            std::string::npos);
}

TEST_F(StorageTest, GivesBackWhatItTookUnderEveryEngine) {
  std::vector<AioConfig> configs(5);
  configs[1].queue_depth = 1;
  configs[2].threads = 3;
  configs[3].single_submit = true;
  configs[4].overlap_events = false;
  const std::vector<std::int64_t> sizes = {100001, 4096, 3};
  for (AioConfig config : configs) {
    config.block_size = 8192;
    const auto storage = cpu::make_file_storage(path, 0, config);
    const ObjectLayout layout(sizes, config.block_size);
    const ObjectId first = storage->create("a", layout), second = storage->create("b", layout);
    for (unsigned generation = 1; generation <= 3; ++generation) {
      const Parts one(sizes, generation), two(sizes, 100 + generation);
      Parts back(sizes, 7), other(sizes, 8);
      storage->write(first, one.span());
      storage->write(second, two.span());
      storage->read(first, back.span());
      storage->read(second, other.span());
      EXPECT_TRUE(back == one && other == two)
          << storage->describe() << " generation " << generation;
    }
  }
  EXPECT_TRUE(fs::is_empty(path)) << "files are left behind";
}

TEST_F(StorageTest, MovesTheBytesAndRequestsOfTheLayout) {
  auto reads = std::make_shared<IoCount>(), writes = std::make_shared<IoCount>();
  const auto storage = cpu::make_file_storage(path, 0, std::make_unique<FaultyEngine>(reads),
                                              std::make_unique<FaultyEngine>(writes));
  const std::vector<std::int64_t> sizes = {50000, 50000, 123};
  const ObjectLayout layout(sizes, 16384);
  const ObjectId object = storage->create("a", layout);
  Parts parts(sizes, 1);
  storage->write(object, parts.span());
  storage->read(object, parts.span());
  for (const auto& count : {reads, writes}) {
    EXPECT_EQ(count->requests, layout.requests());
    EXPECT_EQ(count->bytes, layout.transfer_bytes());
  }
}

// A process may die after any request of a write: the generation before, or the new one, is whole.
TEST_F(StorageTest, LosesNoGenerationWhenAWriteStopsAnywhere) {
  const std::vector<std::int64_t> sizes = {20000, 9000};
  const ObjectLayout layout(sizes, 4096);
  for (std::int64_t n = 0; n < layout.requests(); ++n) {
    const std::string file = path + "/object";
    cpu::ObjectFile object(file, layout);
    const auto plain = cpu::make_io_engine(cpu::make_plain_queue(), {});
    const Parts before(sizes, 1), between(sizes, 2), after(sizes, 3);
    object.write(*plain, before.span());
    object.write(*plain, between.span());
    auto count = std::make_shared<IoCount>();
    count->fails_at = n;
    count->code = EIO;
    FaultyEngine faulty(count);
    const std::string message = message_of([&] { object.write(faulty, after.span()); });
    EXPECT_NE(message.find(file + ": cannot write"), std::string::npos) << message;
    EXPECT_NE(message.find("Input/output error"), std::string::npos) << message;
    Parts back(sizes, 9);
    EXPECT_EQ(cpu::recover(file, layout, back.span()), 2u) << n;
    EXPECT_TRUE(back == between) << n;
    object.write(*plain, after.span());
    EXPECT_EQ(cpu::recover(file, layout, back.span()), 3u);
    EXPECT_TRUE(back == after);
    fs::remove(file);
  }
}

TEST_F(StorageTest, NamesTheBlockThatAFlippedBitIsIn) {
  const std::vector<std::int64_t> sizes = {20000, 9000};
  const ObjectLayout layout(sizes, 4096);
  const std::string file = path + "/object";
  cpu::ObjectFile object(file, layout);
  const auto plain = cpu::make_io_engine(cpu::make_plain_queue(), {});
  Parts parts(sizes, 1);
  object.write(*plain, parts.span());  // generation 1: slot 1
  const int raw = open(file.c_str(), O_RDWR);
  const std::int64_t offset = layout.slot_bytes() + layout.part_offset(0) + 2 * 4096 + 17;
  char byte = 0;
  ASSERT_EQ(pread(raw, &byte, 1, offset), 1);
  byte = static_cast<char>(byte ^ 8);
  ASSERT_EQ(pwrite(raw, &byte, 1, offset), 1);
  close(raw);
  const std::string message = message_of([&] { object.read(*plain, parts.span()); });
  EXPECT_NE(message.find(file + ": the checksum of block 2 of slot 1"), std::string::npos)
      << message;
  Parts back(sizes, 2);
  EXPECT_NE(message_of([&] { cpu::recover(file, layout, back.span()); }), "");
}

TEST_F(StorageTest, SaysThatAFileEndsTooEarly) {
  const ObjectLayout layout({20000}, 4096);
  const std::string file = path + "/object";
  cpu::ObjectFile object(file, layout);
  const auto plain = cpu::make_io_engine(cpu::make_plain_queue(), {});
  Parts parts({20000}, 1);
  object.write(*plain, parts.span());
  fs::resize_file(file, static_cast<std::uintmax_t>(layout.slot_bytes() + 8192));
  const std::string message = message_of([&] { object.read(*plain, parts.span()); });
  EXPECT_NE(message.find(file + ": cannot read"), std::string::npos) << message;
  EXPECT_NE(message.find("ends too early"), std::string::npos) << message;
  std::string why_not;
  if (auto queue = cpu::make_uring_queue(8, why_not)) {
    const auto uring = cpu::make_io_engine(std::move(queue), {});
    EXPECT_NE(message_of([&] { object.read(*uring, parts.span()); }).find("ends too early"),
              std::string::npos);
  }
}

TEST(StorageFolder, IsNamedWhenItCannotBeUsed) {
  const std::string missing =
      message_of([] { cpu::make_file_storage("/no/such/folder", 0, AioConfig{}); });
  EXPECT_NE(missing.find("nvme_path: cannot make /no/such/folder/zerolab-"), std::string::npos)
      << missing;
  EXPECT_NE(missing.find("make the folder or choose another"), std::string::npos) << missing;
  const std::string forbidden = message_of([] { cpu::make_file_storage("/proc", 0, AioConfig{}); });
  EXPECT_NE(forbidden.find("/proc/zerolab-"), std::string::npos) << forbidden;
}

}  // namespace
}  // namespace zl::test
