// The engine over a queue that lies, stops short and fails: what it accepts, and how it keeps the
// queue busy.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/object_file.h"
#include "tests/storage/faulty_queue.h"
#include "tests/storage/object_parts.h"

namespace zl::test {
namespace {

using EngineTest = Folder;

const std::vector<std::int64_t> kSizes = {50001, 20480};  // 5 + 2 blocks with the tail of a page
constexpr std::int64_t kBlock = 12288;

std::unique_ptr<cpu::IoEngine> engine_over(QueueUse& use, QueueFault fault = {},
                                           AioConfig config = {}) {
  return cpu::make_io_engine(std::make_unique<FaultyQueue>(use, fault), config);
}

std::unique_ptr<cpu::IoEngine> plain() {
  return cpu::make_io_engine(cpu::make_plain_queue(), AioConfig{});
}

// What the system may do to a request and the next one puts right.
const QueueFault kTransient[] = {{0, false, -EINTR, -1}, {0, false, -EAGAIN, -1},
                                 {0, false, 0, 4096},    {0, false, 0, 4096 + 512},
                                 {0, false, 0, 512},     {0, false, 0, 8192}};

TEST_F(EngineTest, PutsRightWhatIsShortOrInterruptedAtEveryRequest) {
  const ObjectLayout layout(kSizes, kBlock);
  const Parts one(kSizes, 1), two(kSizes, 2);
  cpu::ObjectFile object(path + "/object", layout);
  object.write(*plain(), one.span());
  for (QueueFault fault : kTransient) {
    for (fault.at = 0; fault.at < layout.requests(); ++fault.at) {
      QueueUse writes, reads;
      object.write(*engine_over(writes, fault), two.span());
      Parts back(kSizes, 3);
      object.read(*engine_over(reads, fault), back.span());
      EXPECT_TRUE(back == two) << fault.at << " " << fault.result << " " << fault.moves;
      // A page is a whole header or tail: there nothing was short.
      const bool whole = fault.moves >= 4096 && writes.requests == layout.requests();
      EXPECT_EQ(writes.requests, layout.requests() + (whole ? 0 : 1));
      EXPECT_GE(writes.bytes, layout.transfer_bytes());
      object.write(*plain(), one.span());
    }
  }
}

TEST_F(EngineTest, NamesFileOffsetAndCauseOfEveryFailedRequest) {
  const ObjectLayout layout(kSizes, kBlock);
  const std::string file = path + "/object";
  cpu::ObjectFile object(file, layout);
  const Parts one(kSizes, 1), two(kSizes, 2);
  object.write(*plain(), one.span());
  const struct {
    int code;
    const char* text;
  } errors[] = {{EIO, "Input/output error"}, {ENOSPC, "No space left"}, {EFBIG, "File too large"}};
  for (const auto& error : errors) {
    for (std::int64_t n = 0; n < layout.requests(); ++n) {
      QueueUse use;
      Parts back(kSizes, 3);
      const QueueFault fault{n, false, -error.code, -1};
      for (const bool write : {true, false}) {
        const auto engine = engine_over(use = {}, fault);
        const std::string message = message_of(
            [&] { write ? object.write(*engine, two.span()) : object.read(*engine, back.span()); });
        EXPECT_NE(message.find(file + (write ? ": cannot write " : ": cannot read ")),
                  std::string::npos)
            << message;
        EXPECT_NE(message.find(" bytes at offset "), std::string::npos) << message;
        EXPECT_NE(message.find(error.text), std::string::npos) << message;
        EXPECT_EQ(use.flying, 0) << "memory was given back while requests used it";
      }
      object.read(*plain(), back.span());
      EXPECT_TRUE(back == one) << "the generation before is lost";
    }
  }
}

TEST_F(EngineTest, GivesUpOnARequestThatNeverAdvances) {
  const ObjectLayout layout(kSizes, kBlock);
  cpu::ObjectFile object(path + "/object", layout);
  const Parts parts(kSizes, 1);
  for (const QueueFault fault :
       {QueueFault{2, true, -EAGAIN, -1}, QueueFault{2, true, 0, 512}, QueueFault{2, true, 0, 0}}) {
    QueueUse use;
    EXPECT_NE(message_of([&] { object.write(*engine_over(use, fault), parts.span()); }), "");
    EXPECT_EQ(use.flying, 0);
  }
}

// A whole transfer under `config`, and how the queue was used for it.
QueueUse use_of(const std::string& file, const AioConfig& config) {
  QueueUse use;
  const ObjectLayout layout({std::int64_t{4096} * 20}, 4096);
  cpu::ObjectFile object(file, layout);
  const Parts parts({std::int64_t{4096} * 20}, 1);
  Parts back({std::int64_t{4096} * 20}, 2);
  object.write(*plain(), parts.span());
  object.read(*engine_over(use, {}, config), back.span());
  EXPECT_TRUE(back == parts);
  EXPECT_EQ(use.requests, layout.requests());
  EXPECT_EQ(use.bytes, layout.transfer_bytes());
  std::filesystem::remove(file);
  return use;
}

TEST_F(EngineTest, KeepsTheConfiguredDepthInFlight) {
  AioConfig config;
  config.queue_depth = 5;
  const QueueUse refilled = use_of(path + "/object", config);
  EXPECT_EQ(refilled.most_flying, 5);
  EXPECT_EQ(refilled.largest_submit, 5);
  EXPECT_EQ(refilled.refills, 16) << "21 requests: five at once, then one for each that ends";

  config.single_submit = true;
  const QueueUse single = use_of(path + "/object", config);
  EXPECT_EQ(single.most_flying, 5);
  EXPECT_EQ(single.largest_submit, 1);
  EXPECT_EQ(single.submits, 21);

  config.single_submit = false;
  config.overlap_events = false;
  const QueueUse batches = use_of(path + "/object", config);
  EXPECT_EQ(batches.refills, 0);
  EXPECT_EQ(batches.submits, 5) << "batches of 5, 5, 5, 5 and 1";
}

}  // namespace
}  // namespace zl::test
