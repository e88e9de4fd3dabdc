#include "tests/cuda_fake/nccl_clique.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "core/base/dtype.h"
#include "tests/cuda_fake/fake.h"

namespace zl::cuda::fake {
namespace {

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

std::atomic<std::int64_t> exchanged{0};

// A ring: in each of N - 1 steps (twice as many for an all-reduce) every rank passes a part on to
// the next. A broadcast passes the whole from rank to rank.
void pass_round(const Transfer& call, std::size_t ranks) {
  const std::size_t bytes = call.count * size_of(call.type), steps = ranks - 1;
  switch (call.kind) {
    case Kind::all_reduce:  // the call's count is of all parts together
      exchanged += static_cast<std::int64_t>(2 * steps * bytes);
      return;
    case Kind::broadcast:
      exchanged += static_cast<std::int64_t>(steps * bytes);
      return;
    default:  // the call's count is of one part
      exchanged += static_cast<std::int64_t>(steps * ranks * bytes);
  }
}

template <class T, class Sum>
void reduce_as(const std::vector<const void*>& sources, std::size_t first, std::size_t count,
               ncclRedOp_t op, void* result) {
  const auto ranks = static_cast<Sum>(sources.size());
  for (std::size_t i = 0; i < count; ++i) {
    Sum sum{};
    for (std::size_t rank = 0; rank < sources.size(); ++rank) {
      const T& stored = static_cast<const T*>(sources[rank])[first + i];
      Sum value{};
      if constexpr (sizeof(T) == 2) {
        value = to_float(stored);
      } else {
        value = static_cast<Sum>(stored);
      }
      sum = rank == 0 ? value : op == ncclMax ? std::max(sum, value) : sum + value;
    }
    if (op == ncclAvg) sum = sum * (Sum{1} / ranks);
    if constexpr (sizeof(T) == 2) {
      static_cast<T*>(result)[i] = from_float<T>(sum);
    } else {
      static_cast<T*>(result)[i] = static_cast<T>(sum);
    }
  }
}

bool reduce(const std::vector<const void*>& sources, std::size_t first, std::size_t count,
            const Transfer& how, void* result) {
  switch (how.type) {
    case ncclFloat64:
      reduce_as<double, double>(sources, first, count, how.op, result);
      return true;
    case ncclFloat32:
      reduce_as<float, float>(sources, first, count, how.op, result);
      return true;
    case ncclBfloat16:
      reduce_as<bfloat16, float>(sources, first, count, how.op, result);
      return true;
    case ncclFloat16:
      reduce_as<float16, float>(sources, first, count, how.op, result);
      return true;
    case ncclInt32:
      reduce_as<std::int32_t, std::int64_t>(sources, first, count, how.op, result);
      return how.op != ncclAvg;
    default:
      return false;
  }
}

// A collective: the same call of every rank. Results are made apart: sources may be destinations.
bool move_collective(const std::vector<const Transfer*>& calls) {
  const Transfer& call = *calls[0];
  std::vector<const void*> sources;
  for (const Transfer* each : calls) {
    const bool fits = each->kind == call.kind && each->count == call.count &&
                      each->type == call.type && each->op == call.op && each->peer == call.peer;
    if (!fits) return false;
    sources.push_back(each->source);
  }
  const std::size_t ranks = calls.size(), bytes = call.count * size_of(call.type);
  const bool gathers = call.kind == Kind::all_gather, scatters = call.kind == Kind::reduce_scatter;
  std::vector<std::byte> result(gathers || scatters ? bytes * ranks : bytes);
  if (gathers) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (bytes > 0) std::memcpy(result.data() + rank * bytes, sources[rank], bytes);
    }
  } else if (call.kind == Kind::broadcast) {
    if (bytes > 0) std::memcpy(result.data(), sources[index(call.peer)], bytes);
  } else if (!reduce(sources, 0, scatters ? call.count * ranks : call.count, call, result.data())) {
    return false;
  }
  for (std::size_t rank = 0; rank < ranks && bytes > 0; ++rank) {
    std::memcpy(calls[rank]->destination, result.data() + (scatters ? rank * bytes : 0),
                gathers ? bytes * ranks : bytes);
  }
  return true;
}

bool is_pair(const Transfer& call) { return call.kind == Kind::send || call.kind == Kind::receive; }

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclFloat64) return 8;
  if (type == ncclFloat32 || type == ncclInt32) return 4;
  return type == ncclBfloat16 || type == ncclFloat16 ? 2 : 1;
}

std::int64_t exchanged_bytes() { return exchanged; }

std::pair<std::size_t, std::size_t> spans(const Transfer& call, std::size_t ranks) {
  const std::size_t bytes = call.count * size_of(call.type);
  switch (call.kind) {
    case Kind::all_gather:
      return {bytes, bytes * ranks};
    case Kind::reduce_scatter:
      return {bytes * ranks, bytes};
    case Kind::send:
      return {bytes, 0};
    case Kind::receive:
      return {0, bytes};
    default:
      return {bytes, bytes};
  }
}

bool move_data(const std::vector<const Launch*>& of_rank) {
  for (const Launch* launch : of_rank) {
    if (launch->size() != of_rank[0]->size()) return false;
  }
  for (std::size_t i = 0; i < of_rank[0]->size(); ++i) {
    std::vector<const Transfer*> calls;
    for (const Launch* launch : of_rank) calls.push_back(&(*launch)[i]);
    if (!move_collective(calls)) return false;
    pass_round(*calls[0], calls.size());
  }
  return true;
}

bool Clique::join(int rank, int device) {
  const std::lock_guard lock(mutex_);
  const bool is_new = joined_.insert(rank).second && devices_.insert(device).second;
  changed_.notify_all();
  return is_new;
}

bool Clique::is_complete() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(joined_.size()) == ranks();
}

std::int64_t Clique::take_number(int rank) {
  const std::lock_guard lock(mutex_);
  return launched_[index(rank)]++;
}

Clique::Round& Clique::round(std::int64_t number) {
  const auto at = static_cast<std::size_t>(number);
  while (rounds_.size() <= at) rounds_.push_back({std::vector<const Launch*>(launched_.size())});
  return rounds_[at];
}

template <class Ready>
bool Clique::wait(Lock& lock, int rank, const Ready& is_ready) {
  while (!is_ready() && !is_over(rank) && !has_failed()) {
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  return !is_over(rank) && !has_failed();
}

void Clique::run(int rank, std::int64_t number, const Launch& launch) {
  Lock lock(mutex_);
  if (!wait(lock, rank, [&] { return ended_[index(rank)] == number; })) return;
  const bool pairs = !launch.empty() && std::all_of(launch.begin(), launch.end(), is_pair);
  if (!(pairs ? run_pairs(lock, rank, launch) : run_collective(lock, rank, launch))) return;
  ++ended_[index(rank)];
  changed_.notify_all();
}

bool Clique::run_collective(Lock& lock, int rank, const Launch& launch) {
  Round& mine = round(collectives_[index(rank)]++);
  mine.of_rank[index(rank)] = &launch;
  if (++mine.arrived == ranks()) {
    mine.is_done = move_data(mine.of_rank);
    failed_ = !mine.is_done;
    changed_.notify_all();
  }
  if (wait(lock, rank, [&] { return mine.is_done; }) || mine.is_done) return mine.is_done;
  mine.of_rank[index(rank)] = nullptr;
  --mine.arrived;
  return false;
}

// Sends and receives between two ranks meet in the order of their calls.
bool Clique::run_pairs(Lock& lock, int rank, const Launch& launch) {
  std::deque<Post> posts;
  for (const Transfer& call : launch) {
    const bool sends = call.kind == Kind::send;
    Line& line = lines_[{sends ? rank : call.peer, sends ? call.peer : rank}];
    if (sends && call.peer != rank) {
      exchanged += static_cast<std::int64_t>(call.count * size_of(call.type));
    }
    (sends ? line.sends : line.receives).push_back(&posts.emplace_back(Post{&call}));
    meet(line);
  }
  const auto all_done = [&] {
    return std::all_of(posts.begin(), posts.end(), [](const Post& each) { return each.is_done; });
  };
  if (wait(lock, rank, all_done) || all_done()) return true;
  for (const Post& post : posts) {
    for (auto& [key, line] : lines_) {
      std::erase(line.sends, &post);
      std::erase(line.receives, &post);
    }
  }
  return false;
}

void Clique::meet(Line& line) {
  if (line.sends.empty() || line.receives.empty()) return;
  Post &from = *line.sends.front(), &to = *line.receives.front();
  const Transfer &send = *from.transfer, &receive = *to.transfer;
  line.sends.pop_front();
  line.receives.pop_front();
  failed_ = failed_ || send.count != receive.count || send.type != receive.type;
  if (!failed_ && send.count > 0) {
    std::memmove(receive.destination, send.source, send.count * size_of(send.type));
  }
  from.is_done = to.is_done = !failed_;
  changed_.notify_all();
}

bool Clique::is_idle(int rank) {
  const std::lock_guard lock(mutex_);
  return ended_[index(rank)] == launched_[index(rank)];
}

void Clique::offer_split(int rank, int color, int key) {
  const std::lock_guard lock(mutex_);
  Split& split = splits_[offered_[index(rank)]++];
  split.offers[rank] = {color, key};
  if (static_cast<int>(split.offers.size()) < ranks()) return;
  std::map<int, int> sizes;
  for (const auto& [each, offer] : split.offers) ++sizes[offer.first];
  for (const auto& [each, size] : sizes) split.made[each] = std::make_shared<Clique>(size);
}

std::optional<std::pair<std::shared_ptr<Clique>, int>> Clique::take_split(int rank) {
  const std::lock_guard lock(mutex_);
  Split& split = splits_[taken_[index(rank)]];
  if (split.made.empty()) return std::nullopt;
  ++taken_[index(rank)];
  const auto [color, key] = split.offers[rank];
  int place = 0;
  for (const auto& [other, offer] : split.offers) {
    const bool before = offer.second < key || (offer.second == key && other < rank);
    place += offer.first == color && before;
  }
  return std::pair{split.made[color], place};
}

void Clique::abort(int rank) {
  const std::lock_guard lock(mutex_);
  aborted_[index(rank)] = true;
  changed_.notify_all();
}

ncclResult_t Clique::error() {
  const std::lock_guard lock(mutex_);
  return failed_ ? ncclInvalidUsage : ncclSuccess;
}

}  // namespace zl::cuda::fake
