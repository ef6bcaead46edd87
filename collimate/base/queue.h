#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "collimate/base/deadline.h"

namespace collimate::base {

// QueueNames are names for the error of a wait that expired: "trainer waits for rollout at queue samples".
struct QueueNames {
  std::string queue;
  std::string owner;  // who pops
  std::string peer;   // who pushes
};

namespace detail {
[[noreturn]] void queue_push_expired(const QueueNames& names, size_t size, const Deadline& deadline);
[[noreturn]] void queue_pop_expired(const QueueNames& names, const Deadline& deadline);
[[noreturn]] void queue_push_closed(const QueueNames& names);
}  // namespace detail

// A Queue is a bounded first-in first-out queue between threads. Thread-safe. A wait takes a deadline and throws
// RunError, which says who waits for whom, when it expires.
template <class T>
class Queue {
 public:
  Queue(size_t capacity, QueueNames names) : capacity_(capacity), names_(std::move(names)) {}

  // Waits for a place. Throws RunError on expiry or when the queue is closed, and the cause when the queue was aborted.
  void push(T item, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    const bool in_time =
        wait_until(not_full_, lock, deadline, [&] { return items_.size() < capacity_ || closed_ || cause_; });
    if (cause_) std::rethrow_exception(cause_);
    if (closed_) detail::queue_push_closed(names_);
    if (!in_time) detail::queue_push_expired(names_, items_.size(), deadline);
    items_.push_back(std::move(item));
    lock.unlock();
    not_empty_.notify_one();
  }

  // Returns false when there is no place now; then `item` is untouched.
  bool try_push(T& item) {
    std::unique_lock lock(mutex_);
    if (cause_) std::rethrow_exception(cause_);
    if (closed_) detail::queue_push_closed(names_);
    if (items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }

  // Waits for an item. Returns nothing once the queue is closed and drained. Throws RunError on expiry, and the cause
  // after abort.
  std::optional<T> pop(const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    const bool in_time = wait_until(not_empty_, lock, deadline, [&] { return !items_.empty() || closed_ || cause_; });
    if (cause_) std::rethrow_exception(cause_);
    if (!in_time) detail::queue_pop_expired(names_, deadline);
    return take_front(lock);
  }

  // Returns nothing when there is no item now.
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    if (cause_) std::rethrow_exception(cause_);
    return take_front(lock);
  }

  // Ends pushing; items that are inside can still be popped. Wakes all waiters.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_all();
  }

  // Every present and later push and pop rethrows the first cause given; items are discarded. Wakes all waiters.
  void abort(std::exception_ptr cause) {
    const std::lock_guard lock(mutex_);
    if (!cause_) cause_ = std::move(cause);
    items_.clear();
    wake_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  size_t capacity() const { return capacity_; }

 private:
  std::optional<T> take_front(std::unique_lock<std::mutex>& lock) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return item;
  }
  void wake_all() {
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  const size_t capacity_;
  const QueueNames names_;
  mutable std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<T> items_;
  std::exception_ptr cause_;
  bool closed_ = false;
};

}  // namespace collimate::base
