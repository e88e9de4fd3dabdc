// The messages of a ThreadGroup: posts that meet in its mailbox.
#include <algorithm>
#include <exception>

#include "core/threads/call_text.h"
#include "core/threads/thread_group.h"

namespace zl {
namespace {

bool is_alone(const Post& post) { return post.partner == nullptr; }

}  // namespace

void ThreadGroup::exchange(int rank, StreamId stream, std::span<const Message> messages,
                           const Move& move) {
  Posts posts;
  for (const Message& message : messages) posts.push_back({rank, stream, message});
  std::unique_lock lock(family_->mutex);
  try {
    for (Post& post : posts) {
      const std::string difference = mailbox_.post(post, [this](int other) { return name(other); });
      if (!difference.empty()) fail(difference, false);
    }
    mail_.notify_all();
    await(lock, posts, move);
  } catch (...) {
    withdraw(lock, posts);
    throw;
  }
}

void ThreadGroup::await(std::unique_lock<std::mutex>& lock, Posts& posts, const Move& move) {
  Stillness alone;
  while (true) {
    move_met(lock, posts, move);
    if (std::all_of(posts.begin(), posts.end(), [](const Post& post) { return post.done; })) return;
    if (std::none_of(posts.begin(), posts.end(), is_alone)) {
      mail_.wait(lock);
      continue;
    }
    check(posts);
    if (!alone.lasts(timeout_)) {
      mail_.wait_for(lock, std::min<std::chrono::milliseconds>(timeout_, Stillness::kLook));
    } else {
      fail(
          "message timed out after " + std::to_string(timeout_.count()) + " ms: " + missing_ranks(),
          false);
    }
  }
}

// The receiver moves; both sides' tensors stay until then.
void ThreadGroup::move_met(std::unique_lock<std::mutex>& lock, Posts& posts, const Move& move) {
  for (Post& post : posts) {
    if (post.message.sends || is_alone(post) || post.done) continue;
    lock.unlock();
    try {
      move(post.partner->message, post.message);
    } catch (...) {
      lock.lock();
      throw;
    }
    lock.lock();
    post.done = post.partner->done = true;
    mail_.notify_all();
  }
}

// Throws when a post that is alone will stay so.
void ThreadGroup::check(const Posts& posts) const {
  for (const Post& post : posts) {
    if (!is_alone(post)) continue;
    const bool ended = family_->ended[name(post.message.peer)];
    if (!family_->failure && !ended) continue;
    throw_failure(post.rank, describe(post.message, name(post.message.peer)),
                  name(post.message.peer));
  }
}

// What a peer is moving must stay until it has; what this rank would move is given up.
void ThreadGroup::withdraw(std::unique_lock<std::mutex>& lock, Posts& posts) {
  for (Post& post : posts) {
    if (is_alone(post)) {
      mailbox_.withdraw(post);
    } else if (!post.message.sends && !post.done) {
      post.done = post.partner->done = true;
    }
  }
  mail_.notify_all();
  const auto is_out = [](const Post& post) { return !is_alone(post) && !post.done; };
  mail_.wait(lock, [&] { return std::none_of(posts.begin(), posts.end(), is_out); });
}

}  // namespace zl
