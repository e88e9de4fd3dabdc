// Programs of one rank that check messages and groups against a serial reference, for whatever
// backend the rank is of: tensors lie in its device's memory.
// Ownership: a DeviceArray refers to its device. Threads: one rank's thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/groups.h"
#include "tests/backends_cpu_world/ranks.h"

namespace zl::cpu::test {

// A tensor in the device's memory.
class DeviceArray {
 public:
  DeviceArray(zl::Device& device, const Array& content)
      : device_(device), like_(content), bytes_(static_cast<std::int64_t>(content.bytes.size())) {
    memory_ = device.reserve(MemorySpace::device, std::max<std::int64_t>(bytes_, 1));
    ZL_CHECK(memory_ != nullptr, "the device has room for a test's tensor");
    set(content);
  }
  ~DeviceArray() {
    device_.release(MemorySpace::device, memory_, std::max<std::int64_t>(bytes_, 1));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  TensorView view() const { return {memory_, like_.dtype, Shape{like_.count}}; }
  void set(const Array& content) {
    if (bytes_ > 0) {
      device_.copy(StreamId::compute, memory_, content.bytes.data(), bytes_, nullptr);
    }
    device_.synchronize(StreamId::compute);
  }
  Array get() const {
    Array now = like_;
    if (bytes_ > 0) {
      device_.copy(StreamId::compute, now.bytes.data(), memory_, bytes_, nullptr);
    }
    device_.synchronize(StreamId::compute);
    return now;
  }

 private:
  zl::Device& device_;
  Array like_;
  std::int64_t bytes_;
  std::byte* memory_ = nullptr;
};
using DeviceArrays = std::vector<std::unique_ptr<DeviceArray>>;

constexpr StreamId kTwoStreams[] = {StreamId::compute, StreamId::communication};

inline void synchronize(RankHandle rank) {
  for (const StreamId stream : kTwoStreams) rank.device.synchronize(stream);
}

inline Array one_integer(int value) {
  Array array(DType::i32, 1);
  std::memcpy(array.bytes.data(), &value, sizeof value);
  return array;
}

inline void add_up(Communicator& group, StreamId stream, const DeviceArray& array,
                   Axis axis = Axis::data) {
  const Segment segment{array.view(), array.view()};
  group.run(stream, {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}, axis},
            nullptr);
}

inline void send_one(Communicator& group, StreamId stream, int peer, const TensorView& tensor) {
  const Message message{peer, true, tensor};
  group.exchange(stream, {&message, 1}, nullptr);
}
inline void receive_one(Communicator& group, StreamId stream, int peer, const TensorView& tensor) {
  const Message message{peer, false, tensor};
  group.exchange(stream, {&message, 1}, nullptr);
}

// What travels from one rank to another at once.
struct Letter {
  int from = 0, to = 0;
  DType dtype = DType::f32;
  std::int64_t count = 0;
};
// One call of every rank that has a letter.
struct Round {
  StreamId stream = StreamId::compute;
  std::vector<Letter> letters;
};

// The same on every rank.
inline std::vector<Round> random_rounds(unsigned seed, int ranks) {
  constexpr DType kLetterTypes[] = {DType::f64, DType::f32, DType::bf16, DType::i32, DType::u8};
  std::minstd_rand random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::vector<Round> rounds(8);
  for (Round& round : rounds) {
    round.stream = kTwoStreams[below(2)];
    const std::size_t letters = below(3 * static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < letters; ++i) {
      const auto others = static_cast<std::size_t>(ranks - 1);
      const int from = static_cast<int>(below(others + 1));
      const int to = (from + 1 + static_cast<int>(below(others))) % ranks;
      round.letters.push_back({from, to, kLetterTypes[below(5)], kCounts[below(kCounts.size())]});
    }
  }
  return rounds;
}

// This rank's part of the rounds, without a wait in between; in each call the letters to or from
// one rank keep their order, the others are mixed.
inline void exchange_rounds(RankHandle rank, Communicator& group,
                            const std::vector<Round>& rounds) {
  const int me = group.rank();
  DeviceArrays arrays;
  std::vector<Array> expected;
  std::vector<std::unique_ptr<Timing>> timings;
  std::size_t number = 0;
  std::vector<std::vector<Message>> calls;
  for (const Round& round : rounds) {
    auto& messages = calls.emplace_back();
    for (const Letter& letter : round.letters) {
      const Array content = input(letter.dtype, letter.count, letter.from, ++number);
      if (letter.from != me && letter.to != me) continue;
      const bool sends = letter.from == me;
      expected.push_back(content);
      arrays.push_back(std::make_unique<DeviceArray>(
          rank.device, sends ? content : Array(letter.dtype, letter.count)));
      messages.push_back({sends ? letter.to : letter.from, sends, arrays.back()->view()});
    }
    const auto before = [me](const Message& a, const Message& b) {
      return (a.peer + me) % 3 < (b.peer + me) % 3;
    };
    std::stable_sort(messages.begin(), messages.end(), before);
  }
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    timings.push_back(std::make_unique<Timing>());
    if (calls[i].empty()) continue;
    group.exchange(rounds[i].stream, calls[i], timings[i].get());
  }
  synchronize(rank);
  for (std::size_t i = 0; i < arrays.size(); ++i) ASSERT_TRUE(arrays[i]->get() == expected[i]) << i;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    if (calls[i].empty()) continue;
    EXPECT_GT(timings[i]->start_ns, 0);
    EXPECT_GE(timings[i]->end_ns, timings[i]->start_ns);
  }
}

struct Choice {
  int color = 0, key = 0;
};

// Every rank's color and key; the same on every rank.
inline std::vector<std::vector<Choice>> choices(int ranks) {
  std::vector<std::vector<Choice>> all(6, std::vector<Choice>(static_cast<std::size_t>(ranks)));
  std::minstd_rand random(static_cast<unsigned>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    all[0][at] = {0, rank};
    all[1][at] = {rank, 0};
    all[2][at] = {rank % 2, -rank};
    all[3][at] = {7 * (rank / 2), 0};
    all[4][at] = {static_cast<int>(random() % 3), static_cast<int>(random() % 3)};
    all[5][at] = {rank == ranks - 1 ? 1 : 0, rank % 3};
  }
  return all;
}

// Serial reference: the ranks of this rank's color in order.
inline std::vector<int> members_of(const std::vector<Choice>& choice, int rank) {
  std::vector<int> members;
  for (int other = 0; other < static_cast<int>(choice.size()); ++other) {
    if (choice[static_cast<std::size_t>(other)].color ==
        choice[static_cast<std::size_t>(rank)].color) {
      members.push_back(other);
    }
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return choice[static_cast<std::size_t>(a)].key < choice[static_cast<std::size_t>(b)].key;
  });
  return members;
}

// Groups of different sizes run different numbers of collectives at the same time, on two streams,
// and letters go around in each; all of it beside the world's own.
inline void use_group(RankHandle rank, Communicator& group, const std::vector<int>& members) {
  Communicator& world = rank.communicator;
  const int me = world.rank(), size = group.size();
  ASSERT_EQ(size, static_cast<int>(members.size()));
  ASSERT_EQ(members[static_cast<std::size_t>(group.rank())], me);
  EXPECT_EQ(group.link(), world.link());
  int sum = 0, all = 0;
  for (const int member : members) sum += 1 << member;
  for (int other = 0; other < world.size(); ++other) all += 1 << other;

  const DeviceArray mine(rank.device, one_integer(1 << me));
  const DeviceArray whole(rank.device, one_integer(1 << me));
  const DeviceArray order(rank.device, Array(DType::i32, size));
  DeviceArrays sums;
  for (int i = 0; i <= size; ++i) {
    sums.push_back(std::make_unique<DeviceArray>(rank.device, one_integer(1 << me)));
    add_up(group, kTwoStreams[i % 2], *sums.back());
  }
  const Segment gather{mine.view(), order.view()};
  group.run(StreamId::compute,
            {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&gather, 1}}, nullptr);
  const DeviceArray from_left(rank.device, Array(DType::i32, 1));
  if (size > 1) {
    const Message ring[] = {{(group.rank() + size - 1) % size, false, from_left.view()},
                            {(group.rank() + 1) % size, true, mine.view()}};
    group.exchange(StreamId::communication, ring, nullptr);
  }
  add_up(world, StreamId::compute, whole);
  synchronize(rank);
  for (const auto& each : sums) ASSERT_EQ(each->get().get(0), sum);
  const Array gathered = order.get();
  for (int i = 0; i < size; ++i) {
    ASSERT_EQ(gathered.get(i), 1 << members[static_cast<std::size_t>(i)]);
  }
  if (size > 1) {
    const int left = members[static_cast<std::size_t>((group.rank() + size - 1) % size)];
    EXPECT_EQ(from_left.get().get(0), 1 << left);
  }
  EXPECT_EQ(whole.get().get(0), all);
}

inline void split_in_every_way(RankHandle rank) {
  Communicator& world = rank.communicator;
  const int me = world.rank();
  for (const std::vector<Choice>& choice : choices(world.size())) {
    const auto [color, key] = choice[static_cast<std::size_t>(me)];
    const auto group = world.split(color, key);
    const std::vector<int> members = members_of(choice, me);
    use_group(rank, *group, members);
    // A group of a group.
    const auto half = group->split(group->rank() % 2, 0);
    std::vector<int> every_second;
    for (std::size_t i = static_cast<std::size_t>(group->rank() % 2); i < members.size(); i += 2) {
      every_second.push_back(members[i]);
    }
    use_group(rank, *half, every_second);
    synchronize(rank);
  }
}

// Collectives along each axis, all under way at once.
inline void add_along_axes(RankHandle rank, const Mesh& mesh) {
  constexpr Axis kUsed[] = {Axis::tensor, Axis::shard,    Axis::replicate,
                            Axis::data,   Axis::pipeline, Axis::world};
  Groups groups(rank.communicator, mesh);
  const int me = rank.communicator.rank();
  DeviceArrays arrays;
  std::vector<int> expected;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const Axis axis : kUsed) {
      if (groups.size(axis) == 1) continue;
      arrays.push_back(std::make_unique<DeviceArray>(rank.device, one_integer(1 << me)));
      expected.push_back(0);
      for (const int member : mesh.members(me, axis)) expected.back() += 1 << member;
      add_up(groups.of(axis), kTwoStreams[repeat % 2], *arrays.back(), axis);
    }
  }
  synchronize(rank);
  for (std::size_t i = 0; i < arrays.size(); ++i) EXPECT_EQ(arrays[i]->get().get(0), expected[i]);
}

}  // namespace zl::cpu::test
