#include "collimate/tensor/pending.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"

namespace collimate::tensor {

struct Pending::State {
  std::string waiter, worker;
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false;
  base::Heartbeat progress;
  std::exception_ptr failure;

  void complete(std::exception_ptr cause) {
    {
      const std::lock_guard lock(mutex);
      if (finished) return;
      finished = true;
      failure = std::move(cause);
    }
    changed.notify_all();
  }
};

Pending::Pending() : state_(std::make_shared<State>()) { state_->finished = true; }
Pending::Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}

void Pending::wait(double deadline_seconds) const {
  std::unique_lock lock(state_->mutex);
  const auto deadline = base::Deadline::after_last_beat(deadline_seconds, state_->progress);
  if (!base::wait_until(state_->changed, lock, deadline, [&] { return state_->finished; }))
    throw base::RunError(base::expectation(state_->waiter,
                                           fmt::format("{} to move on within {} s", state_->worker, deadline_seconds),
                                           fmt::format("silence: {} waits for {}", state_->waiter, state_->worker)));
  if (state_->failure) std::rethrow_exception(state_->failure);
}

bool Pending::finished() const {
  const std::lock_guard lock(state_->mutex);
  return state_->finished;
}

void Pending::then(const Exec& exec, double deadline_seconds) const {
  exec.device->follow(exec.stream, *this, deadline_seconds);
}

Completion::Completion(std::string waiter, std::string worker) : state_(std::make_shared<Pending::State>()) {
  state_->waiter = std::move(waiter);
  state_->worker = std::move(worker);
}

Completion::~Completion() {
  if (state_ == nullptr) return;
  state_->complete(std::make_exception_ptr(
      base::RunError(base::expectation(state_->worker, "to finish its work", "the end of it before"))));
}

Completion& Completion::operator=(Completion&& other) noexcept {
  Completion before(std::move(other));
  std::swap(state_, before.state_);
  return *this;
}

Pending Completion::pending() const { return Pending(state_); }

void Completion::progress() { state_->progress.beat(); }
void Completion::finish() { state_->complete(nullptr); }
void Completion::fail(std::exception_ptr cause) { state_->complete(std::move(cause)); }

}  // namespace collimate::tensor
