// Rounds that came over and over are taken out of a trace; what is told of it stays.
#include "core/trace/round_folding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/trace/trace.h"

namespace zl {
namespace {

// Appends rounds that free the block of the round before and wait for the record of `back` rounds
// before. Blocks lie at `places` addresses in turn.
class RowOfRounds {
 public:
  explicit RowOfRounds(int places, int back = 1) : places_(places), back_(back) {}

  void round(bool may_fold, std::int64_t width = 8) {
    trace.begin_round(may_fold);
    add({.type = EventType::allocate, .bytes_written = 64, .id = place(1)});
    if (rounds_ >= back_) add({.type = EventType::wait, .id = kFirst + records_ - back_});
    if (rounds_ > 0) {
      add({.type = EventType::free, .bytes_written = 64, .id = place(0)});
    }
    add({.type = EventType::wait, .id = 0});  // as every round
    add({.stream = 1, .m = width});
    add({.type = EventType::record, .stream = 1, .id = kFirst + records_++});
    ++rounds_;
  }
  void end() {
    trace.end_round();
    add({.type = EventType::wait, .id = kFirst + records_ - 1});
    add({.type = EventType::free, .bytes_written = 64, .id = place(0)});
    add({.type = EventType::op});
  }
  TraceEvent& add(TraceEvent event) {
    event.scope.micro = rounds_;
    return trace.append(event);
  }

  Trace trace;

 private:
  static constexpr std::int64_t kFirst = 100;
  std::int64_t place(int next) const { return 1000 + (rounds_ + next) % places_; }

  int places_, back_, rounds_ = 0;
  std::int64_t records_ = 0;
};

// Of `rounds` rounds, the first `held` and the last of which may not fold.
Trace step_of(int rounds, int held, int places = 2, int back = 1) {
  RowOfRounds program(places, back);
  program.add({.type = EventType::record, .id = 0});
  for (int i = 0; i < rounds; ++i) program.round(i >= held && i + 1 < rounds);
  program.end();
  return std::move(program.trace);
}

// Blocks that are held at the end, and whether none was freed that is not held.
std::set<std::int64_t> blocks_of(const Trace& trace) {
  std::set<std::int64_t> live;
  for (const TraceEvent& event : trace.events()) {
    if (event.type == EventType::allocate) {
      EXPECT_TRUE(live.insert(event.id).second);
    }
    if (event.type == EventType::free) {
      EXPECT_EQ(live.erase(event.id), 1u);
    }
  }
  return live;
}

TEST(RoundFolding, MoreRoundsAreNotMoreEvents) {
  for (const int places : {2, 3, 7}) {
    const std::size_t events = step_of(20, 2, places).events().size();
    EXPECT_LT(events, step_of(20, 20, places).events().size());
    for (int rounds = 20; rounds < 60; ++rounds) {
      const Trace folded = step_of(rounds, 2, places), all = step_of(rounds, rounds, places);
      EXPECT_LE(folded.events().size(), events + 2 * 6 * static_cast<std::size_t>(places));
      EXPECT_EQ(folded.op_count(), all.op_count());
      EXPECT_EQ(folded.sequence_hash(), all.sequence_hash()) << places << ' ' << rounds;
      EXPECT_EQ(blocks_of(folded), blocks_of(all)) << places << ' ' << rounds;
    }
  }
}

// A buffer of several is free when the round that had it before is done with it.
TEST(RoundFolding, AWaitStaysAsFarBehindWhatItIsFor) {
  for (const int back : {2, 3, 5}) {
    for (const int places : {1, 2, 3}) {
      const std::size_t events = step_of(40, 6, places, back).events().size();
      for (int rounds = 40; rounds < 60; ++rounds) {
        const Trace folded = step_of(rounds, 6, places, back);
        EXPECT_LE(folded.events().size(), events + 6 * static_cast<std::size_t>(back * places));
        EXPECT_EQ(folded.sequence_hash(), step_of(rounds, rounds, places, back).sequence_hash())
            << back << ' ' << places << ' ' << rounds;
      }
    }
  }
}

TEST(RoundFolding, AWaitForARecordThatWentIsForTheOneInItsPlace) {
  const Trace trace = step_of(100, 3);
  std::set<std::int64_t> recorded;
  for (const TraceEvent& event : trace.events()) {
    if (event.type == EventType::record) recorded.insert(event.id);
    if (event.type == EventType::wait) {
      EXPECT_TRUE(recorded.contains(event.id)) << event.id;
    }
  }
}

TEST(RoundFolding, WhatIsTimedStaysWhereItIs) {
  RowOfRounds program(2);
  program.round(false);
  Timing* timing = &program.add({.m = 5}).timing;
  EXPECT_FALSE(program.trace.in_round_that_may_fold());
  for (int i = 0; i < 10; ++i) program.round(true);
  EXPECT_TRUE(program.trace.in_round_that_may_fold());
  program.round(false);
  *timing = {1, 2};
  const auto found = std::ranges::find(program.trace.events(), 5, &TraceEvent::m);
  EXPECT_EQ(&found->timing, timing);
}

TEST(RoundFolding, WhatDiffersIsHeld) {
  RowOfRounds program(1);
  for (int i = 0; i < 40; ++i) program.round(true, i % 2);
  EXPECT_EQ(program.trace.rounds().size(), 40u);
  for (int i = 0; i < 40; ++i) program.round(true, i / 20);
  program.trace.end_round();
  EXPECT_LE(program.trace.rounds().size(), 43u);
  std::int64_t count = 0;
  for (const Round& round : program.trace.rounds()) count += round.count;
  EXPECT_EQ(count, 80);
}

}  // namespace
}  // namespace zl
