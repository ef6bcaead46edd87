#pragma once

#include <exception>
#include <memory>
#include <string>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// A Pending stands for work that finishes elsewhere: a collective, a residency move or a transfer returns one. Copies
// share the work. Thread-safe.
class Pending {
 public:
  // Stands for work that is finished already.
  Pending();

  // Blocks until the work is finished, and rethrows its failure. The deadline is one on progress: each call of
  // Completion::progress renews it. Throws RunError, which names who waits for whom, when it expires.
  void wait(double deadline_seconds) const;
  bool finished() const;
  // Has work that `exec` is given from now on run after this. A device with queues returns at once and reports a
  // failure later; the CPU has no queues, so that there this is wait().
  void then(const Exec& exec, double deadline_seconds) const;

 private:
  friend class Completion;
  struct State;
  explicit Pending(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// A Completion is the side that does the work. When it is destroyed before the work has ended, its Pending fails.
class Completion {
 public:
  // The names are for the message of an expired deadline: "`waiter` waits for `worker`".
  Completion(std::string waiter, std::string worker);
  ~Completion();
  Completion(Completion&&) noexcept = default;
  Completion& operator=(Completion&& other) noexcept;  // fails the work that this one has not ended

  Pending pending() const;
  void progress();
  void finish();
  void fail(std::exception_ptr cause);

 private:
  std::shared_ptr<Pending::State> state_;
};

}  // namespace collimate::tensor
