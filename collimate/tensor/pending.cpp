#include "collimate/tensor/pending.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "collimate/base/error.h"

namespace collimate::tensor {

struct Pending::State {
  std::string waiter, worker;
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false;
  uint64_t progress = 0;
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
  uint64_t seen = state_->progress;
  const auto moved = [&] { return state_->finished || state_->progress != seen; };
  while (!state_->finished) {
    if (!state_->changed.wait_for(lock, std::chrono::duration<double>(deadline_seconds), moved))
      throw base::RunError(base::expectation(state_->waiter,
                                             fmt::format("{} to move on within {} s", state_->worker, deadline_seconds),
                                             fmt::format("silence: {} waits for {}", state_->waiter, state_->worker)));
    seen = state_->progress;
  }
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

Pending Completion::pending() const { return Pending(state_); }

void Completion::progress() {
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->progress;
  }
  state_->changed.notify_all();
}

void Completion::finish() { state_->complete(nullptr); }
void Completion::fail(std::exception_ptr cause) { state_->complete(std::move(cause)); }

}  // namespace collimate::tensor
