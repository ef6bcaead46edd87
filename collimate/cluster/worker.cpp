#include "collimate/cluster/worker.h"

#include <exception>

#include "collimate/base/error.h"

namespace collimate::cluster {
namespace {

// An idle worker sleeps this long before it looks around again. A push, a poke and space in the outbox wake it at once.
constexpr double kIdleSeconds = 1.0;

}  // namespace

Worker::Worker(WorkerSpec spec, const HandlerFactory& make, Mailbox& inbox, Mailbox& outbox)
    : spec_(std::move(spec)), make_(make), inbox_(inbox), outbox_(outbox) {}

Worker::~Worker() = default;

void Worker::run() {
  try {
    handler_ = make_(spec_);
    send(message_of(Ready()));
    loop();
  } catch (const base::Error& error) {
    send(message_of(Died{error.what(), error.exit_code()}));
  } catch (const std::exception& error) {
    send(message_of(Died{error.what()}));
  }
  while (!flush() && !outbox_.closed()) inbox_.pop(kIdleSeconds / 100);
  handler_.reset();
}

void Worker::loop() {
  while (!stopped_) {
    bool sent = flush();
    bool busy = sent && handler_->step(*this);
    std::optional<Message> message = busy ? inbox_.try_pop() : inbox_.pop(kIdleSeconds);
    if (!message) {
      if (inbox_.closed()) stopped_ = true;
      continue;
    }
    if (message->incarnation == spec_.incarnation) handler_->handle(std::move(*message), *this);
  }
}

void Worker::send(Message message) {
  message.sender = spec_.rank;
  message.incarnation = spec_.incarnation;
  unsent_.push_back(std::move(message));
  flush();
}

bool Worker::flush() {
  while (!unsent_.empty() && outbox_.try_push(unsent_.front())) unsent_.pop_front();
  return unsent_.empty();
}

}  // namespace collimate::cluster
