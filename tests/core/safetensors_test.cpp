// Safetensors files: golden bytes, round trips, and every defect a reader must name.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  std::string contents() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  // A file with this header and `data_size` zero bytes of data.
  void put(const std::string& header, std::size_t data_size) const {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    put(bytes + header + std::string(data_size, '\0'));
  }

  void expect_invalid(const std::string& defect) const {
    try {
      read_safetensors(path_);
      FAIL() << "accepted a file with: " << defect;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      const std::string message = error.what();
      EXPECT_NE(message.find(path_), std::string::npos) << message;
      EXPECT_NE(message.find(defect), std::string::npos) << message;
    }
  }

  bool is_refused() const {
    try {
      read_safetensors(path_);
    } catch (const Error&) {
      return true;
    }
    return false;
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "x.safetensors";
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST_F(Safetensors, GoldenBytes) {
  const std::vector<std::uint16_t> half{0x3c00};
  const std::vector<float> values{1.0f, -2.0f};
  write_safetensors(
      path_, {{"h", DType::f16, {1}, bytes_of(half)}, {"w", DType::f32, {2}, bytes_of(values)}},
      {{"k", "v"}});
  // w comes first, its elements are wider. The checksum was computed with another program.
  const std::string header =
      R"({"__metadata__":{"k":"v","zerolab.crc32c":"07a3c4d5"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("h":{"dtype":"F16","shape":[1],"data_offsets":[8,10]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  std::string golden(8, '\0');
  golden[0] = static_cast<char>(padded);
  golden += header + std::string(padded - header.size(), ' ');
  golden += std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x3c", 10);
  EXPECT_EQ(contents(), golden);
}

TEST_F(Safetensors, RoundTripOfEveryDType) {
  const std::vector<double> f64{1.5, -0.0, 3e300};
  const std::vector<float> f32{1, 2, 3, 4, 5, 6};
  const std::vector<std::uint16_t> b16{0x3f80, 0x7fc0};
  const std::vector<std::int32_t> i32{-1};
  const std::vector<std::int64_t> i64{INT64_MIN, INT64_MAX};
  const std::vector<std::uint8_t> u8{1, 2, 255};
  const std::vector<NamedTensor> tensors{
      {"layer.0 \"quoted\" \xc3\xa9", DType::bf16, {2}, bytes_of(b16)},
      {"f64", DType::f64, {3}, bytes_of(f64)},
      {"f32", DType::f32, {2, 3}, bytes_of(f32)},
      {"f16", DType::f16, {2, 1, 1}, bytes_of(b16)},
      {"i32 scalar", DType::i32, {}, bytes_of(i32)},
      {"i64", DType::i64, {2}, bytes_of(i64)},
      {"u16", DType::u16, {1, 2}, bytes_of(b16)},
      {"u8", DType::u8, {3}, bytes_of(u8)},
      {"empty", DType::f32, {0, 7}, {}},
  };
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"step", "50"}};
  write_safetensors(path_, tensors, metadata);
  const SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.metadata, metadata);
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const NamedTensor& found = file.at(tensor.name);
    EXPECT_EQ(found.dtype, tensor.dtype);
    EXPECT_EQ(found.shape, tensor.shape);
    ASSERT_EQ(found.bytes.size(), tensor.bytes.size());
    EXPECT_TRUE(std::equal(found.bytes.begin(), found.bytes.end(), tensor.bytes.begin()));
    EXPECT_EQ((found.bytes.data() - file.data.data()) % size_of(tensor.dtype), 0u);
  }
  EXPECT_THROW(file.at("absent"), Error);
}

TEST_F(Safetensors, AFileWithoutTensors) {
  write_safetensors(path_, {});
  EXPECT_EQ(contents().substr(8), R"({"__metadata__":{"zerolab.crc32c":"2b57142b"}}  )");
  EXPECT_TRUE(read_safetensors(path_).tensors.empty());
}

TEST_F(Safetensors, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  put("old");
  const std::vector<float> one{1.0f};
  const NamedTensor good{"a", DType::f32, {1}, bytes_of(one)};
  const NamedTensor short_of_bytes{"b", DType::f32, {2}, bytes_of(one)};
  const NamedTensor reserved{"__metadata__", DType::f32, {1}, bytes_of(one)};
  const NamedTensor not_utf8{"\xff", DType::f32, {1}, bytes_of(one)};
  EXPECT_THROW(write_safetensors(path_, {good, short_of_bytes}), Error);
  EXPECT_THROW(write_safetensors(path_, {good, good}), Error);
  EXPECT_THROW(write_safetensors(path_, {reserved}), Error);
  EXPECT_THROW(write_safetensors(path_, {not_utf8}), Error);
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
  EXPECT_THROW(write_safetensors((folder_ / "no" / "x").string(), {good}), Error);
}

TEST_F(Safetensors, EveryPrefixOfAFileIsRefused) {
  const std::vector<float> values{1, 2, 3};
  write_safetensors(path_, {{"w", DType::f32, {3}, bytes_of(values)}});
  const std::string whole = contents();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(whole.substr(0, length));
    expect_invalid("truncated");
  }
  put(whole + "x");
  expect_invalid("1 bytes follow the last tensor");
}

// A flip in its name makes the checksum an entry like others: then there is none, and that shows.
TEST_F(Safetensors, EveryFlippedBitIsRefusedOrLeavesNoChecksum) {
  const std::vector<float> values{1, 2, 3};
  write_safetensors(path_, {{"w", DType::f32, {3}, bytes_of(values)}}, {{"key", "value"}});
  const std::string whole = contents();
  const std::size_t name = whole.find("zerolab.crc32c"), end = name + sizeof("zerolab.crc32c") - 1;
  ASSERT_TRUE(read_safetensors(path_).written);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    char& byte = flipped[bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    put(flipped);
    const bool in_name = bit / 8 >= name && bit / 8 < end;
    if (!in_name) {
      expect_invalid("");
    } else {
      EXPECT_TRUE(is_refused() || !read_safetensors(path_).written) << "byte " << bit / 8;
    }
  }
}

TEST_F(Safetensors, TheChecksumIsOfAllBytes) {
  const std::vector<float> values{1, 2, 3};
  const WrittenFile written = write_safetensors(path_, {{"w", DType::f32, {3}, bytes_of(values)}},
                                                {{"a", "\"zerolab.crc32c\":\"x"}});
  const SafetensorsFile file = read_safetensors(path_);
  ASSERT_TRUE(file.written);
  EXPECT_EQ(written.bytes, static_cast<std::int64_t>(contents().size()));
  EXPECT_EQ(file.written->bytes, written.bytes);
  EXPECT_EQ(file.written->checksum, written.checksum);
}

TEST_F(Safetensors, NamesEveryDefect) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_invalid("cannot open it");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_invalid("is a FIFO, not a regular file");
  fs::remove(path_);
  put("{" + a + "}", 4);
  EXPECT_EQ(read_safetensors(path_).tensors.size(), 1u);
  EXPECT_FALSE(read_safetensors(path_).written) << "of another program";
  put("{" + a, 4);
  expect_invalid("not valid JSON");
  put("[]", 0);
  expect_invalid("not a JSON object");
  put("{" + a + "," + a + "}", 4);
  expect_invalid("tensor \"a\" appears twice");
  put("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6);
  expect_invalid("tensor \"b\": its data overlaps");
  put("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12);
  expect_invalid("tensor \"b\": there is a hole");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4);
  expect_invalid("tensor \"a\": shape [2] of F32 does not take the 4 bytes");
  put(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4);
  expect_invalid("dtype F8_E4M3 is not one of");
  put(R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4);
  expect_invalid("no dtype");
  put(R"({"a":7})", 4);
  expect_invalid("not an object");
  put(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4);
  expect_invalid("shape is not an array of non-negative integers");
  put(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0);
  expect_invalid("does not take");
  put(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4);
  expect_invalid("data_offsets is not [begin, end]");
  put(R"({"__metadata__":{"k":1}})", 0);
  expect_invalid("__metadata__ is not an object of strings");
  put(std::string(16, '\xff'));
  expect_invalid("this is not a safetensors file");
}

}  // namespace
}  // namespace zl
