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
  pass_round(call, ranks);
  for (std::size_t rank = 0; rank < ranks && bytes > 0; ++rank) {
    std::memcpy(calls[rank]->destination, result.data() + (scatters ? rank * bytes : 0),
                gathers ? bytes * ranks : bytes);
  }
  return true;
}

// Sends and receives between two ranks meet in the order of their calls.
bool move_pairs(const std::vector<const Launch*>& of_rank) {
  const int ranks = static_cast<int>(of_rank.size());
  const auto calls = [&](int rank, Kind kind, int peer) {
    std::vector<const Transfer*> found;
    for (const Transfer& each : *of_rank[index(rank)]) {
      if (each.kind == kind && each.peer == peer) found.push_back(&each);
    }
    return found;
  };
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const auto sends = calls(from, Kind::send, to), receives = calls(to, Kind::receive, from);
      if (sends.size() != receives.size()) return false;
      for (std::size_t i = 0; i < sends.size(); ++i) {
        const Transfer &send = *sends[i], &receive = *receives[i];
        if (send.count != receive.count || send.type != receive.type) return false;
        if (from != to) exchanged += static_cast<std::int64_t>(send.count * size_of(send.type));
        if (send.count > 0) {
          std::memmove(receive.destination, send.source, send.count * size_of(send.type));
        }
      }
    }
  }
  return true;
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclFloat64) return 8;
  if (type == ncclFloat32 || type == ncclInt32) return 4;
  return type == ncclBfloat16 || type == ncclFloat16 ? 2 : 1;
}

std::int64_t exchanged_bytes() { return exchanged; }

bool move_data(const std::vector<const Launch*>& of_rank) {
  const auto is_pair = [](const Transfer& each) {
    return each.kind == Kind::send || each.kind == Kind::receive;
  };
  std::vector<std::vector<const Transfer*>> collectives;
  for (const Launch* launch : of_rank) {
    auto& mine = collectives.emplace_back();
    for (const Transfer& each : *launch) {
      if (!is_pair(each)) mine.push_back(&each);
    }
    if (mine.size() != collectives[0].size()) return false;
  }
  for (std::size_t i = 0; i < collectives[0].size(); ++i) {
    std::vector<const Transfer*> calls;
    for (const auto& mine : collectives) calls.push_back(mine[i]);
    if (!move_collective(calls)) return false;
  }
  return move_pairs(of_rank);
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

void Clique::run(int rank, std::int64_t number, const Launch& launch) {
  std::unique_lock lock(mutex_);
  // Not for ever: the device may fail without a word to this clique.
  const auto wait = [&](const auto& is_ready) {
    while (!is_ready() && !is_over(rank) && !has_failed()) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    return !is_over(rank) && !has_failed();
  };
  if (number > 0 && !wait([&] { return round(number - 1).is_done; })) return;
  Round& mine = round(number);
  mine.of_rank[index(rank)] = &launch;
  if (++mine.arrived == ranks()) {
    mine.is_done = move_data(mine.of_rank);
    failed_ = !mine.is_done;
    changed_.notify_all();
  }
  if (!wait([&] { return mine.is_done; }) && !mine.is_done) {
    mine.of_rank[index(rank)] = nullptr;
    --mine.arrived;
  }
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
