#include "results/pickle.h"

#include "core/base/error.h"

namespace zl {
namespace {

// Opcodes, as in Python's pickletools.
constexpr char kProtocol = '\x80', kStop = '.', kMark = '(';
constexpr char kEmptyDict = '}', kSetItems = 'u', kEmptyList = ']', kAppends = 'e';
constexpr char kInt1 = 'K', kInt2 = 'M', kInt4 = 'J', kLong1 = '\x8a';
constexpr char kUnicode = 'X', kTrue = '\x88', kFalse = '\x89', kPair = '\x86';

// Readers keep a batch on their stack.
constexpr std::int64_t kBatch = 1000;

// Of two's complement.
int bytes_needed(std::int64_t value) {
  int count = 1;
  while (count < 8 && value >> (8 * count - 1) != (value < 0 ? -1 : 0)) ++count;
  return count;
}

}  // namespace

PickleWriter::PickleWriter() : out_{kProtocol, '\x02'} {}

void PickleWriter::begin_item() {
  Container& container = open_.back();
  if (container.items % kBatch == 0) {
    if (container.items > 0) out_ += container.is_dict ? kSetItems : kAppends;
    out_ += kMark;
  }
  ++container.items;
}

void PickleWriter::before_value() {
  if (!open_.empty() && !open_.back().is_dict) begin_item();
}

void PickleWriter::bytes(std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xffu);
}

void PickleWriter::begin_dict() {
  before_value();
  out_ += kEmptyDict;
  open_.push_back({true, 0});
}

void PickleWriter::begin_list() {
  before_value();
  out_ += kEmptyList;
  open_.push_back({false, 0});
}

void PickleWriter::end() {
  ZL_CHECK(!open_.empty(), "end() without a begin");
  if (open_.back().items > 0) out_ += open_.back().is_dict ? kSetItems : kAppends;
  open_.pop_back();
}

void PickleWriter::key(std::string_view name) {
  ZL_CHECK(!open_.empty() && open_.back().is_dict, "a key outside of a dictionary");
  begin_item();
  out_ += kUnicode;
  bytes(name.size(), 4);
  out_ += name;
}

void PickleWriter::number(std::int64_t value) {
  before_value();
  if (value >= 0 && value < 256) {
    out_ += kInt1;
    bytes(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 65536) {
    out_ += kInt2;
    bytes(static_cast<std::uint64_t>(value), 2);
  } else if (value == static_cast<std::int32_t>(value)) {
    out_ += kInt4;
    bytes(static_cast<std::uint64_t>(value), 4);
  } else {
    const int count = bytes_needed(value);
    out_ += kLong1;
    out_ += static_cast<char>(count);
    bytes(static_cast<std::uint64_t>(value), count);
  }
}

void PickleWriter::text(std::string_view utf8) {
  before_value();
  out_ += kUnicode;
  bytes(utf8.size(), 4);
  out_ += utf8;
}

void PickleWriter::truth(bool value) {
  before_value();
  out_ += value ? kTrue : kFalse;
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  before_value();
  open_.push_back({true, 0});  // the two are no items of a list
  number(first);
  number(second);
  open_.pop_back();
  out_ += kPair;
}

void PickleWriter::item(std::string_view name, std::int64_t value) {
  key(name);
  number(value);
}

void PickleWriter::item(std::string_view name, std::string_view utf8) {
  key(name);
  text(utf8);
}

std::string PickleWriter::finish() {
  ZL_CHECK(open_.empty(), "a container has no end");
  return std::move(out_) + kStop;
}

}  // namespace zl
