#include "collimate/cluster/mailbox.h"

#include <algorithm>
#include <chrono>

#include "collimate/base/fault.h"

namespace collimate::cluster {

Mailbox::Mailbox(size_t capacity)
    : capacity_(std::max(1, static_cast<int>(base::fault_count("mailbox.capacity", static_cast<int64_t>(capacity))))) {}

bool Mailbox::try_push(Message& message) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return true;
    if (messages_.size() >= capacity_) return false;
    messages_.push_back(std::move(message));
    base::fault_count("mailbox.held", static_cast<int64_t>(messages_.size()));
  }
  changed_.notify_all();
  return true;
}

std::optional<Message> Mailbox::take() {
  if (messages_.empty()) return std::nullopt;
  std::optional<Message> message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

std::optional<Message> Mailbox::pop(double seconds) {
  std::optional<Message> message;
  {
    std::unique_lock lock(mutex_);
    auto ready = [this] { return !messages_.empty() || poked_ || closed_; };
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), ready);
    poked_ = false;
    message = take();
  }
  if (message && on_space_) on_space_();
  return message;
}

std::optional<Message> Mailbox::try_pop() {
  std::optional<Message> message;
  {
    std::lock_guard lock(mutex_);
    message = take();
  }
  if (message && on_space_) on_space_();
  return message;
}

void Mailbox::poke() {
  {
    std::lock_guard lock(mutex_);
    poked_ = true;
  }
  changed_.notify_all();
}

void Mailbox::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool Mailbox::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

size_t Mailbox::size() const {
  std::lock_guard lock(mutex_);
  return messages_.size();
}

}  // namespace collimate::cluster
