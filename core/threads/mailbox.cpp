#include "core/threads/mailbox.h"

#include "core/threads/call_text.h"

namespace zl {
namespace {

std::array<int, 3> line_of(const Post& post) {
  const int peer = post.message.peer;
  const bool sends = post.message.sends;
  return {sends ? post.rank : peer, sends ? peer : post.rank, static_cast<int>(post.stream)};
}

std::string difference(const Post& a, const Post& b, const Mailbox::NameOf& name) {
  const Post &send = a.message.sends ? a : b, &receive = a.message.sends ? b : a;
  return describe_mismatch({a.stream, a.number, name(send.rank), name(receive.rank),
                            describe_tensor(send.message), describe_tensor(receive.message)});
}

}  // namespace

std::string Mailbox::post(Post& post, const NameOf& name) {
  Line& line = lines_[line_of(post)];
  const bool sends = post.message.sends;
  post.number = ++line.posted[sends];
  auto& others = line.alone[!sends];
  if (others.empty()) {
    line.alone[sends].push_back(&post);
    return {};
  }
  Post& other = *others.front();
  if (!same(post.message, other.message)) {
    line.alone[sends].push_back(&post);
    return difference(post, other, name);
  }
  others.pop_front();
  post.partner = &other;
  other.partner = &post;
  return {};
}

void Mailbox::withdraw(const Post& post) {
  std::erase(lines_[line_of(post)].alone[post.message.sends], &post);
}

std::vector<Waiting> Mailbox::waiting(const NameOf& name) const {
  std::vector<Waiting> all;
  for (const auto& [key, line] : lines_) {
    for (const auto& alone : line.alone) {
      for (const Post* post : alone) {
        const int rank = name(post->rank);
        all.push_back({rank, describe_wait(rank, post->number, post->stream,
                                           describe(post->message, name(post->message.peer)))});
      }
    }
  }
  return all;
}

}  // namespace zl
