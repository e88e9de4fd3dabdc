// Where the messages of one group of thread ranks meet: the n-th send from one rank to another on
// one stream with the n-th receive.
// Ownership: refers to posts, which their ranks withdraw before they go away. Threads: none of its
// own; the group calls it under its mutex.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/device/communicator.h"

namespace zl {

// A message as one rank posts it.
struct Post {
  int rank = 0;
  StreamId stream = StreamId::compute;
  Message message;
  std::int64_t number = 0;  // from 1, of its sender, receiver and stream
  Post* partner = nullptr;  // what it has met
  bool done = false;        // moved: the tensor is its rank's again
};

// A rank, by its name in messages, and what it waits for.
struct Waiting {
  int rank = 0;
  std::string text;
};

class Mailbox {
 public:
  // Name of a rank in messages.
  using NameOf = std::function<int(int rank)>;

  // Meets the other side's post when that is there; what it says when the two differ, else "".
  std::string post(Post& post, const NameOf& name);
  // A post that has met nobody.
  void withdraw(const Post& post);
  // The posts that have met nobody.
  std::vector<Waiting> waiting(const NameOf& name) const;

 private:
  struct Line {  // of one sender, receiver and stream
    std::array<std::deque<Post*>, 2> alone;
    std::array<std::int64_t, 2> posted{};  // receives, sends
  };
  std::map<std::array<int, 3>, Line> lines_;
};

}  // namespace zl
