// The scheduler behind shim.h: runs a block's threads as fibers until each waits or has ended,
// releases barriers and warp exchanges that are complete, and names what can never complete.
// A thread gets a stack when it begins; one that ends without having waited hands its stack to the
// next that begins, so that kernels without barriers never switch.
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "tests/cuda_host/shim.h"
#include "tests/cuda_host/stack_switch.h"

namespace zl::cuda::host {
namespace {

constexpr int kWarp = 32;

enum class State { ready, at_barrier, at_exchange, done };

struct Copy {
  void* shared;
  const void* global;
  bool valid;
  int group;
};

struct Stack {
  Context context;
  std::unique_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(kStack);
};

struct Fiber {
  Stack* stack = nullptr;  // nullptr: has not begun
  State state = State::ready;
  Position position;
  std::vector<Copy> copies;
  int group = 0;  // copies issued now belong to it
};

// Two sets of slots: a lane can be one exchange ahead of the slowest, never two.
struct Warp {
  Slots slots[2];
  int arrived = 0, lanes = 0;
  std::uint64_t round = 0;
};

std::atomic<std::uint64_t> fiber_order{0};

// Stacks are kept from grid to grid: untouched pages cost nothing, fresh ones do.
std::vector<std::unique_ptr<Stack>> all_stacks;
std::vector<Stack*> free_stacks;

Stack* take_stack() {
  if (free_stacks.empty()) {
    all_stacks.push_back(std::make_unique<Stack>());
    free_stacks.push_back(all_stacks.back().get());
  }
  Stack* taken = free_stacks.back();
  free_stacks.pop_back();
  return taken;
}

class Grid {
 public:
  Grid(std::int64_t grid_x, std::int64_t grid_y, int block, std::int64_t shared,
       const std::function<void()>& body)
      : body_(body), random_(fiber_order), shared_bytes_(static_cast<std::size_t>(shared)) {
    fibers_.resize(static_cast<std::size_t>(block));
    for (std::int64_t y = 0; y < grid_y; ++y) {
      for (std::int64_t x = 0; x < grid_x; ++x) {
        Position p;
        p.block = {static_cast<unsigned>(x), static_cast<unsigned>(y), 0};
        p.grid = {static_cast<unsigned>(grid_x), static_cast<unsigned>(grid_y), 1};
        p.block_size = {static_cast<unsigned>(block), 1, 1};
        blocks_.push_back(p);
      }
    }
    std::shuffle(blocks_.begin(), blocks_.end(), random_);
  }

  void run() {
    for (const Position& block : blocks_) run_block(block);
  }

  Fiber& running() { return *running_; }
  std::byte* shared() { return shared_.get(); }

  ~Grid() {  // after a failure some threads never end
    for (const Fiber& fiber : fibers_) {
      if (fiber.stack != nullptr && fiber.state != State::done) free_stacks.push_back(fiber.stack);
    }
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  void wait(State state) {
    running_->state = state;
    running_->stack->context.switch_to(scheduler_);
  }

  const Slots& exchange(const void* mine, std::size_t bytes, void (*combine)(Slots&)) {
    Warp& warp = warps_[running_->position.thread.x / kWarp];
    Slots& slots = warp.slots[warp.round % 2];
    if (bytes > 0) std::memcpy(slots.lane[lane()], mine, bytes);
    if (++warp.arrived < kWarp) {
      wait(State::at_exchange);
    } else {
      if (combine != nullptr) combine(slots);
      warp.arrived = 0;
      ++warp.round;
      const std::size_t first = running_->position.thread.x / kWarp * kWarp;
      for (std::size_t i = first; i < first + kWarp; ++i) fibers_[i].state = State::ready;
    }
    return slots;
  }

 private:
  void run_block(const Position& block) {
    shared_ = std::make_unique<std::byte[]>(shared_bytes_ + 16);
    std::fill_n(shared_.get(), shared_bytes_, std::byte{0xff});  // NaN in every floating type
    warps_.assign(fibers_.size() / kWarp, Warp{});
    for (std::size_t i = 0; i < fibers_.size(); ++i) start(fibers_[i], block, i);
    while (run_ready()) {
    }
  }

  void start(Fiber& fiber, const Position& block, std::size_t index) {
    fiber.stack = nullptr;
    fiber.state = State::ready;
    fiber.position = block;
    fiber.position.thread.x = static_cast<unsigned>(index);
    fiber.copies.clear();
    fiber.group = 0;
  }

  // Runs every ready fiber once, in a random order; false when all have ended.
  bool run_ready() {
    round_.clear();
    next_ = 0;
    std::size_t done = 0, at_barrier = 0;
    for (Fiber& fiber : fibers_) {
      if (fiber.state == State::ready) round_.push_back(&fiber);
      done += fiber.state == State::done;
      at_barrier += fiber.state == State::at_barrier;
    }
    if (done == fibers_.size()) return false;
    if (round_.empty()) {
      if (at_barrier != fibers_.size()) report_deadlock();
      for (Fiber& fiber : fibers_) round_.push_back(&fiber);
    }
    std::shuffle(round_.begin(), round_.end(), random_);
    while (next_ < round_.size()) {
      switch_to(*round_[next_++]);
      if (error_) std::rethrow_exception(error_);
    }
    return true;
  }

  [[noreturn]] void report_deadlock() {
    std::string text = "kernel: threads wait for each other in vain:";
    int named = 0;
    for (const Fiber& fiber : fibers_) {
      if (++named > 4 && fiber.position.thread.x + 1 < fibers_.size()) continue;
      text += " thread " + std::to_string(fiber.position.thread.x) +
              (fiber.state == State::done         ? " has ended,"
               : fiber.state == State::at_barrier ? " is at __syncthreads,"
                                                  : " is in a warp exchange,");
    }
    const Index3& block = fibers_.front().position.block;
    throw Error(ErrorCode::failed,
                text + " block " + std::to_string(block.x) + ", " + std::to_string(block.y));
  }

  static void enter();

  void switch_to(Fiber& fiber) {
    if (fiber.stack == nullptr) {
      fiber.stack = take_stack();
      fiber.stack->context.prepare(fiber.stack->memory.get(), &Grid::enter);
    }
    fiber.state = State::ready;
    running_ = &fiber;
    scheduler_.switch_to(fiber.stack->context);
  }

  // Of the thread that has ended on this stack to one that has not begun; false: none is next.
  bool take_over() {
    Stack* stack = running_->stack;
    if (error_ || next_ == round_.size() || round_[next_]->stack != nullptr) {
      free_stacks.push_back(stack);
      return false;
    }
    running_ = round_[next_++];
    running_->stack = stack;
    return true;
  }

  const std::function<void()>& body_;
  std::mt19937_64 random_;
  std::size_t shared_bytes_;
  std::unique_ptr<std::byte[]> shared_;
  std::vector<Position> blocks_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<Fiber*> round_;  // those that run now, in this order
  std::size_t next_ = 0;       // of round_
  Fiber* running_ = nullptr;
  Context scheduler_;
  std::exception_ptr error_;
};

std::mutex one_at_a_time;  // __shared__ variables and stacks are the process's
Grid* grid = nullptr;

void Grid::enter() {
  Grid& self = *grid;
  Context::arrive(self.scheduler_);
  do {
    try {
      self.body_();
      if (!self.running_->copies.empty()) fail("an asynchronous copy was never waited for");
    } catch (...) {
      self.error_ = std::current_exception();
    }
    self.running_->state = State::done;
  } while (self.take_over());
  self.running_->stack->context.switch_to(self.scheduler_, true);
}

}  // namespace

void set_fiber_order(std::uint64_t seed) { fiber_order = seed; }

void run_grid(std::int64_t grid_x, std::int64_t grid_y, int block, std::int64_t shared,
              const std::function<void()>& body) {
  const std::lock_guard lock(one_at_a_time);
  Grid mine(grid_x, grid_y, block, shared, body);
  grid = &mine;
  struct Reset {
    ~Reset() { grid = nullptr; }
  } reset;
  mine.run();
}

const Position& position() { return grid->running().position; }
std::byte* shared_memory() { return grid->shared(); }

void fail(const std::string& what) {
  const Position& p = position();
  throw Error(ErrorCode::failed, "kernel: " + what + " (block " + std::to_string(p.block.x) + ", " +
                                     std::to_string(p.block.y) + ", thread " +
                                     std::to_string(p.thread.x) + ")");
}

void sync_threads() { grid->wait(State::at_barrier); }
const Slots& exchange(const void* mine, std::size_t bytes, void (*combine)(Slots&)) {
  return grid->exchange(mine, bytes, combine);
}

void async_copy(void* shared, const void* global, bool valid) {
  require_aligned(shared, "asynchronous copy to shared memory");
  require_aligned(valid ? global : nullptr, "asynchronous copy from global memory");
  std::memset(shared, 0xff, 16);  // until it has arrived
  Fiber& fiber = grid->running();
  fiber.copies.push_back({shared, global, valid, fiber.group});
}

void async_commit() { ++grid->running().group; }

void async_wait(int pending) {
  Fiber& fiber = grid->running();
  std::erase_if(fiber.copies, [&](const Copy& copy) {
    if (copy.group >= fiber.group - pending) return false;
    if (copy.valid) {
      std::memcpy(copy.shared, copy.global, 16);
    } else {
      std::memset(copy.shared, 0, 16);
    }
    return true;
  });
}

}  // namespace zl::cuda::host
