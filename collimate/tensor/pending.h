#pragma once

#include <exception>
#include <memory>
#include <string>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// A collective, a residency move or a transfer returns this: work that finishes elsewhere. Copies share it.
// Thread-safe.
class Pending {
 public:
  // Work that is finished already.
  Pending();

  // Blocks until it is finished and rethrows its failure. The deadline is one on progress: each Completion::progress
  // renews it. On expiry RunError naming who waits for whom.
  void wait(double deadline_seconds) const;
  bool finished() const;
  // Work that `exec` is given from here on runs after it. A device with queues goes on at once and brings a failure up
  // later; the CPU has none, so that this is wait().
  void then(const Exec& exec, double deadline_seconds) const;

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
