#include "collimate/host/core_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/host/cpu.h"

namespace collimate::host {
namespace {

constexpr int kRangesPerThread = 8;
constexpr int kSpins = 8000;  // pauses before a futex wait, about 0.2 ms; waking a sleeping core takes 0.02 to 0.05 ms
// When the process has more pool threads than cores, a spin steals a peer's core.
constexpr int kSpinsOversubscribed = 8;
constexpr int32_t kOpen = 1 << 30;  // bit of `state` (job is open); the lower bits count the threads inside the job

std::atomic<int> live_threads{0};  // of all pools that have helpers; a pool of one thread never waits
thread_local bool inside_task = false;

void pause() { __builtin_ia32_pause(); }

int spin_limit() {
  static const int cores = core_count();
  return live_threads.load(std::memory_order_relaxed) > cores ? kSpinsOversubscribed : kSpins;
}

// Returns once `word` is no longer `old`: spins at most `spin_limit()` pauses, then sleeps on the word's futex.
void wait_while_equal(const std::atomic<int32_t>& word, int32_t old) {
  for (int spin = spin_limit(); spin > 0; --spin) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

// The job's fields change only while `state` is 0, when the job is closed and no thread is inside. A thread enters by
// counting itself in while the job is open, so a thread that wakes late is never waited for.
struct CorePool::Impl {
  Impl(int threads, const std::function<void()>& begin);
  ~Impl();
  void run(int64_t total, int64_t step, const std::function<void(int64_t, int64_t)>& task);
  void serve();
  void take_ranges();
  bool enter();
  void leave();

  const int thread_count;
  std::mutex caller;                   // held by the thread that runs a job
  std::atomic<int32_t> generation{0};  // incremented for every job and at the end; idle threads wait on it
  std::atomic<int32_t> state{0};       // kOpen | threads inside
  std::atomic<bool> stopping{false};
  std::vector<std::thread> helpers;

  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0;
  int64_t chunk = 1;
  std::exception_ptr failure;  // written by the thread that sets `failed`
  std::atomic<bool> failed{false};
  alignas(64) std::atomic<int64_t> next{0};
};

CorePool::Impl::Impl(int threads, const std::function<void()>& begin) : thread_count(threads) {
  if (threads > 1) live_threads += threads;
  for (int i = 1; i < threads; ++i)
    helpers.emplace_back([this, begin] {
      if (begin) begin();
      serve();
    });
}

CorePool::Impl::~Impl() {
  stopping = true;
  generation.fetch_add(1);
  generation.notify_all();
  for (auto& helper : helpers) helper.join();
  if (thread_count > 1) live_threads -= thread_count;
}

bool CorePool::Impl::enter() {
  int32_t seen = state.load(std::memory_order_relaxed);
  while (seen & kOpen) {
    if (state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
  }
  return false;
}

void CorePool::Impl::leave() {
  if (state.fetch_sub(1, std::memory_order_acq_rel) == 1) state.notify_all();
}

void CorePool::Impl::serve() {
  inside_task = true;
  int32_t seen = 0;
  while (true) {
    wait_while_equal(generation, seen);
    seen = generation.load(std::memory_order_acquire);
    if (stopping) return;
    if (!enter()) continue;
    take_ranges();
    leave();
  }
}

void CorePool::Impl::take_ranges() {
  for (;;) {
    const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
    if (begin >= count) return;
    try {
      (*body)(begin, std::min(begin + chunk, count));
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      next.store(count, std::memory_order_relaxed);
    }
  }
}

void CorePool::Impl::run(int64_t total, int64_t step, const std::function<void(int64_t, int64_t)>& task) {
  body = &task;
  count = total;
  chunk = step;
  failure = nullptr;
  failed.store(false, std::memory_order_relaxed);
  next.store(0, std::memory_order_relaxed);
  state.store(kOpen, std::memory_order_release);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();

  inside_task = true;
  take_ranges();
  inside_task = false;
  int32_t inside = state.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  while (inside != 0) {
    wait_while_equal(state, inside);
    inside = state.load(std::memory_order_acquire);
  }
  if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
}

CorePool::CorePool(int threads, std::function<void()> begin) {
  if (threads < 1) {
    throw base::InputError(base::expectation("core pool", "at least 1 thread", std::to_string(threads)));
  }
  impl_ = std::make_unique<Impl>(threads, begin);
}

CorePool::~CorePool() = default;

int CorePool::threads() const { return impl_->thread_count; }

void CorePool::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t ranges = int64_t{kRangesPerThread} * impl_->thread_count;
  const int64_t chunk = std::max<int64_t>(1, (count / grain + ranges - 1) / ranges) * grain;
  std::unique_lock lock(impl_->caller, std::defer_lock);
  if (impl_->thread_count == 1 || inside_task || chunk >= count || !lock.try_lock()) {
    body(0, count);
    return;
  }
  impl_->run(count, chunk, body);
}

}  // namespace collimate::host
