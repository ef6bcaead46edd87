#pragma once

#include <atomic>

namespace collimate::base {

// A StopFlag asks a run to stop at the next place where it can save its state. Thread-safe; a signal handler may call
// `request`.
class StopFlag {
 public:
  // `signal` is the signal's number, 0 when code asked.
  void request(int signal = 0) noexcept { state_.store(signal + 1, std::memory_order_release); }
  bool requested() const noexcept { return state_.load(std::memory_order_acquire) != 0; }
  int signal() const noexcept { return state_.load(std::memory_order_acquire) - 1; }

 private:
  std::atomic<int> state_{0};
};

}  // namespace collimate::base
