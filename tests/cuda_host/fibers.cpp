// The scheduler behind shim.h: runs a block's threads as fibers until each waits or has ended,
// releases barriers and warp exchanges that are complete, and names what can never complete.
#include <ucontext.h>

#include <exception>
#include <memory>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "tests/cuda_host/shim.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace zl::cuda::host {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStack = 512 * 1024;
#else
constexpr std::size_t kStack = 128 * 1024;
#endif
constexpr int kWarp = 32;

enum class State { ready, at_barrier, at_exchange, done };

struct Copy {
  void* shared;
  const void* global;
  bool valid;
  int group;
};

struct Fiber {
  ucontext_t context{};
  std::byte* stack = nullptr;
  void* fake_stack = nullptr;  // AddressSanitizer's
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

std::uint64_t fiber_order = 0;

// Stacks are kept from grid to grid: untouched pages cost nothing, fresh ones do.
std::byte* stack_of(std::size_t index) {
  static thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
  while (stacks.size() <= index) {
    stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(kStack));
  }
  return stacks[index].get();
}

class Grid {
 public:
  Grid(std::int64_t grid_x, std::int64_t grid_y, int block, std::int64_t shared,
       const std::function<void()>& body)
      : body_(body), random_(fiber_order), shared_bytes_(static_cast<std::size_t>(shared)) {
    fibers_.resize(static_cast<std::size_t>(block));
    for (std::size_t i = 0; i < fibers_.size(); ++i) fibers_[i].stack = stack_of(i);
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

  void wait(State state) {
    running_->state = state;
    switch_to_scheduler(false);
  }

  const Slots& exchange(const void* mine, std::size_t bytes) {
    Warp& warp = warps_[running_->position.thread.x / kWarp];
    Slots& slots = warp.slots[warp.round % 2];
    if (bytes > 0) std::memcpy(slots.lane[lane()], mine, bytes);
    if (++warp.arrived < kWarp) {
      wait(State::at_exchange);
    } else {
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
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Grid::enter, 0);
    fiber.state = State::ready;
    fiber.position = block;
    fiber.position.thread.x = static_cast<unsigned>(index);
    fiber.copies.clear();
    fiber.group = 0;
  }

  // Runs every ready fiber once, in a random order; false when all have ended.
  bool run_ready() {
    std::vector<Fiber*> ready;
    std::size_t done = 0, at_barrier = 0;
    for (Fiber& fiber : fibers_) {
      if (fiber.state == State::ready) ready.push_back(&fiber);
      done += fiber.state == State::done;
      at_barrier += fiber.state == State::at_barrier;
    }
    if (done == fibers_.size()) return false;
    if (ready.empty()) {
      if (at_barrier != fibers_.size()) report_deadlock();
      for (Fiber& fiber : fibers_) ready.push_back(&fiber);
    }
    std::shuffle(ready.begin(), ready.end(), random_);
    for (Fiber* fiber : ready) {
      fiber->state = State::ready;
      switch_to(*fiber);
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
    running_ = &fiber;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fiber.stack, kStack);
    swapcontext(&scheduler_, &fiber.context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    swapcontext(&scheduler_, &fiber.context);
#endif
  }

  void switch_to_scheduler(bool last) {
    Fiber& fiber = *running_;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(last ? nullptr : &fiber.fake_stack, bottom_, size_);
    swapcontext(&fiber.context, &scheduler_);
    __sanitizer_finish_switch_fiber(fiber.fake_stack, &bottom_, &size_);
#else
    (void)last;
    swapcontext(&fiber.context, &scheduler_);
#endif
  }

  const std::function<void()>& body_;
  std::mt19937_64 random_;
  std::size_t shared_bytes_;
  std::unique_ptr<std::byte[]> shared_;
  std::vector<Position> blocks_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  Fiber* running_ = nullptr;
  ucontext_t scheduler_{};
  std::exception_ptr error_;
  const void* bottom_ = nullptr;  // of the scheduler's stack
  std::size_t size_ = 0;
};

thread_local Grid* grid = nullptr;

void Grid::enter() {
  Grid& self = *grid;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self.bottom_, &self.size_);
#endif
  try {
    self.body_();
    if (!self.running_->copies.empty()) fail("an asynchronous copy was never waited for");
  } catch (...) {
    self.error_ = std::current_exception();
  }
  self.running_->state = State::done;
  self.switch_to_scheduler(true);
}

}  // namespace

void set_fiber_order(std::uint64_t seed) { fiber_order = seed; }

void run_grid(std::int64_t grid_x, std::int64_t grid_y, int block, std::int64_t shared,
              const std::function<void()>& body) {
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
const Slots& exchange(const void* mine, std::size_t bytes) { return grid->exchange(mine, bytes); }

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
