#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace collimate::tensor {

// What a collective, a residency move or a transfer returns: work that finishes elsewhere. Copies share it.
// Thread-safe.
class Pending {
 public:
  // Work that is finished already.
  Pending();

  // Blocks until it is finished and rethrows its failure. The deadline is one on progress: each Completion::progress
  // renews it. On expiry RunError naming who waits for whom.
  void wait(double deadline_seconds) const;
  bool finished() const;
  // Runs `next` after success, in the thread that finishes the work, or here and now when it is finished; its failure,
  // or this work's, becomes the result's.
  Pending then(std::function<void()> next) const;

 private:
  friend class Completion;
  struct State;
  explicit Pending(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// The side that does the work. Dropped unfinished, it fails its Pending.
class Completion {
 public:
  // Names for the message on expiry: "`waiter` waits for `worker`".
  Completion(std::string waiter, std::string worker);
  ~Completion();
  Completion(Completion&&) noexcept = default;
  Completion& operator=(Completion&&) noexcept = default;

  Pending pending() const;
  void progress();
  void finish();
  void fail(std::exception_ptr cause);

 private:
  std::shared_ptr<Pending::State> state_;
};

}  // namespace collimate::tensor
