// Reads pickles of protocol 2 without objects: what the snapshot tests compare.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zl::test {

struct Pickled {
  std::int64_t number = 0;
  std::string text;
  std::vector<Pickled> list;  // and tuples
  std::map<std::string, Pickled> dict;

  const Pickled& at(const std::string& key) const { return dict.at(key); }
};

inline Pickled unpickle(const std::string& bytes) {
  std::vector<Pickled> stack;
  std::vector<std::size_t> marks;
  std::size_t at = 0;
  const auto integer = [&](int count) {
    std::uint64_t value = 0;
    for (int i = 0; i < count; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at++))} << (8 * i);
    }
    const int unused = 64 - 8 * count;
    return static_cast<std::int64_t>(value << unused) >> unused;
  };
  const auto push = [&](Pickled value) { stack.push_back(std::move(value)); };
  const auto items = [&] {
    const auto begin = stack.begin() + static_cast<std::ptrdiff_t>(marks.back());
    std::vector<Pickled> out(begin, stack.end());
    stack.erase(begin, stack.end());
    marks.pop_back();
    return out;
  };
  while (true) {
    const char opcode = bytes.at(at++);
    if (opcode == '\x80') {
      if (bytes.at(at++) != 2) throw std::runtime_error("not protocol 2");
    } else if (opcode == '.') {
      if (stack.size() != 1 || at != bytes.size()) throw std::runtime_error("rest");
      return stack[0];
    } else if (opcode == '(') {
      marks.push_back(stack.size());
    } else if (opcode == '}' || opcode == ']') {
      push({});
    } else if (opcode == 'K') {
      push({integer(1) & 0xff, "", {}, {}});
    } else if (opcode == 'M') {
      push({integer(2) & 0xffff, "", {}, {}});
    } else if (opcode == 'J') {
      push({integer(4), "", {}, {}});
    } else if (opcode == '\x8a') {
      const int count = static_cast<unsigned char>(bytes.at(at++));
      push({integer(count), "", {}, {}});
    } else if (opcode == '\x88' || opcode == '\x89') {
      push({opcode == '\x88', "", {}, {}});
    } else if (opcode == 'X') {
      const auto size = static_cast<std::size_t>(integer(4));
      push({0, bytes.substr(at, size), {}, {}});
      at += size;
    } else if (opcode == '\x86') {
      std::vector<Pickled> two(stack.end() - 2, stack.end());
      stack.resize(stack.size() - 2);
      push({0, "", std::move(two), {}});
    } else if (opcode == 'e') {
      for (const Pickled& item : items()) stack.back().list.push_back(item);
    } else if (opcode == 'u') {
      const std::vector<Pickled> pairs = items();
      for (std::size_t i = 0; i < pairs.size(); i += 2) {
        stack.back().dict[pairs[i].text] = pairs[i + 1];
      }
    } else {
      throw std::runtime_error("unknown opcode " + std::to_string(opcode));
    }
  }
}

}  // namespace zl::test
