#include "collimate/base/queue.h"

#include "collimate/base/error.h"

namespace collimate::base::detail {

void queue_push_expired(const QueueNames& names, size_t size, const Deadline& deadline) {
  throw RunError(expectation(
      "queue " + names.queue, fmt::format("{} to take an item within {} s", names.owner, deadline.limit_seconds()),
      fmt::format("none taken: {} waits for {}, all {} places are full", names.peer, names.owner, size)));
}

void queue_pop_expired(const QueueNames& names, const Deadline& deadline) {
  throw RunError(expectation("queue " + names.queue,
                             fmt::format("an item from {} within {} s", names.peer, deadline.limit_seconds()),
                             fmt::format("none: {} waits for {}", names.owner, names.peer)));
}

void queue_push_closed(const QueueNames& names) {
  throw RunError(
      expectation("queue " + names.queue, fmt::format("{} to push while it is open", names.peer), "a closed queue"));
}

}  // namespace collimate::base::detail
