#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "collimate/cluster/message.h"

namespace collimate::cluster {

// A Mailbox is a bounded first-in first-out queue of messages with one consumer and any number of producers; all
// methods are thread-safe. Producers never block: a full mailbox refuses, and the callback given to `on_space` tells
// them when to come back.
class Mailbox {
 public:
  explicit Mailbox(size_t capacity);

  // Returns false, with the message untouched, when the mailbox is full. A closed mailbox accepts the message and drops
  // it.
  bool try_push(Message& message);
  // Waits for a message for at most `seconds`. Returns nullopt after that, when poked, or when the mailbox is closed
  // and empty.
  std::optional<Message> pop(double seconds);
  std::optional<Message> try_pop();

  // Wakes the consumer once without a message. When nobody waits, the next wait ends at once.
  void poke();
  void close();
  bool closed() const;
  size_t size() const;
  // Sets a callback that the consumer's thread calls after each pop, outside the lock. It must be set before the first
  // push.
  void on_space(std::function<void()> callback) { on_space_ = std::move(callback); }

 private:
  std::optional<Message> take();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  bool poked_ = false;
  bool closed_ = false;
  std::function<void()> on_space_;
};

}  // namespace collimate::cluster
