// Writes Python pickles of protocol 2: dictionaries, lists, pairs, whole numbers and text.
// Ownership: owns the bytes. Threads: one writer per thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

// Values are written in order; every begin has its end. The bytes are those of Python's pickler
// without memo, but for containers and rests of batches with a single item, where Python writes one
// opcode less.
class PickleWriter {
 public:
  PickleWriter();

  void begin_dict();
  void key(std::string_view name);  // its value is what is written next
  void begin_list();
  void end();  // of the innermost dictionary or list

  void number(std::int64_t value);
  void text(std::string_view utf8);
  void truth(bool value);
  void pair(std::int64_t first, std::int64_t second);  // a tuple

  // Of a dictionary.
  void item(std::string_view name, std::int64_t value);
  void item(std::string_view name, std::string_view utf8);

  std::string finish();

 private:
  struct Container {
    bool is_dict = false;
    std::int64_t items = 0;
  };

  void begin_item();
  void before_value();
  void bytes(std::uint64_t value, int count);

  std::string out_;
  std::vector<Container> open_;
};

}  // namespace zl
