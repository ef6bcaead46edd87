#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>

#include "collimate/base/philox.h"
#include "tests/support/fault_control.h"

namespace collimate::test {

// Counts what becomes of the messages of this process's workers while it lives, and can make their way harder.
class WatchedMessages {
 public:
  // `mailbox`: messages that each one holds from now on, 0 for as many as its maker wants. A worker waits up to
  // `random_delay_seconds` before each message.
  explicit WatchedMessages(int64_t mailbox = 0, double random_delay_seconds = 0)
      : mailbox_(mailbox), random_delay_seconds_(random_delay_seconds) {}

  // The most messages that a mailbox has held so far.
  int64_t most_held() const { return most_held_; }
  int64_t delays() const { return static_cast<int64_t>(delays_); }
  // These were reparsed: the texts of workers, messages that the driver sent and that workers sent.
  int64_t specs() const { return specs_; }
  int64_t of_driver() const { return of_driver_; }
  int64_t of_workers() const { return of_workers_; }

 private:
  int64_t answer(std::string_view place, int64_t count) {
    if (place == "mailbox.capacity" && mailbox_ > 0) return mailbox_;
    if (place == "mailbox.held") hold(count);
    if (place == "worker.message" && random_delay_seconds_ > 0) delay();
    if (place == "reparse.spec") ++specs_;
    if (place == "reparse.of_driver") ++of_driver_;
    if (place == "reparse.of_worker") ++of_workers_;
    return count;
  }
  void hold(int64_t held) {
    int64_t most = most_held_;
    while (held > most && !most_held_.compare_exchange_weak(most, held)) continue;
  }
  void delay() {
    const double share = base::uniform(5, 7, 0, delays_++);
    std::this_thread::sleep_for(std::chrono::duration<double>(random_delay_seconds_ * share));
  }

  const int64_t mailbox_;
  const double random_delay_seconds_;
  std::atomic<int64_t> most_held_{0}, specs_{0}, of_driver_{0}, of_workers_{0};
  std::atomic<uint32_t> delays_{0};
  const base::CountAnswers answers_{[this](std::string_view place, int64_t count) { return answer(place, count); }};
};

}  // namespace collimate::test
