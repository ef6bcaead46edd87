#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "collimate/base/immovable.h"

namespace collimate::base {

// Clock is the clock of deadlines and spans: std::chrono::steady_clock, or a ManualClock's time while a test has one.
struct Clock {
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

// A ManualClock is for tests: while it lives, time stands still for all threads and only advance() moves it. Only one
// may live at a time.
class ManualClock : private Immovable {
 public:
  ManualClock();
  ~ManualClock();
  void advance(double seconds);
};

// Returns seconds since an arbitrary fixed point. This is for measuring, never for decisions that change results.
double now_seconds();

// A Heartbeat holds the time of the last sign of life of something that another thread waits for. Thread-safe.
class Heartbeat {
 public:
  Heartbeat() { beat(); }
  void beat() { last_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed); }
  Clock::time_point last() const { return Clock::time_point(Clock::duration(last_.load(std::memory_order_relaxed))); }

 private:
  std::atomic<Clock::rep> last_;
};

// A Deadline is the moment until which a wait may last: `seconds` after its start, or after the last beat of a
// heartbeat if that is later, so that progress renews it. It is a value: copy it freely. The heartbeat is not owned.
class Deadline {
 public:
  static Deadline never() { return Deadline(); }
  static Deadline after(double seconds) { return Deadline(seconds, nullptr); }
  static Deadline after_last_beat(double seconds, const Heartbeat& heartbeat) { return Deadline(seconds, &heartbeat); }

  void renew() { start_ = Clock::now(); }
  bool is_never() const { return never_; }
  Clock::time_point at() const;  // must not be never()
  bool expired() const { return !never_ && Clock::now() >= at(); }
  double limit_seconds() const { return limit_seconds_; }
  // Returns the time left as poll() wants it: -1 for never, 0 when expired, otherwise milliseconds, rounded up.
  int remaining_milliseconds() const;

 private:
  Deadline() = default;
  Deadline(double seconds, const Heartbeat* heartbeat)
      : never_(false), limit_seconds_(seconds), start_(Clock::now()), heartbeat_(heartbeat) {}

  bool never_ = true;
  double limit_seconds_ = 0;
  Clock::time_point start_{};
  const Heartbeat* heartbeat_ = nullptr;
};

// Returns how long a wait may sleep before it looks at the clock again: until the deadline, or 1 ms while a ManualClock
// lives, whose time moves without waking anyone.
std::chrono::steady_clock::duration nap_before(const Deadline& deadline);

// Waits until `ready()`. Returns false when the deadline, however often it was renewed, passes first.
template <class Ready>
bool wait_until(std::condition_variable& condition, std::unique_lock<std::mutex>& lock, const Deadline& deadline,
                Ready ready) {
  while (!ready()) {
    if (deadline.is_never()) {
      condition.wait(lock);
    } else if (deadline.expired()) {
      return false;
    } else {
      condition.wait_for(lock, nap_before(deadline));
    }
  }
  return true;
}

}  // namespace collimate::base
