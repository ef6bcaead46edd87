#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/immovable.h"

namespace collimate::tensor {

// An OperationTime says how often the operations of one name (operations.h) were called, and how long they took.
struct OperationTime {
  std::string name;
  int64_t calls = 0;
  double total_seconds = 0;  // with the operations that they called in turn
  double self_seconds = 0;   // without them

  COLLIMATE_FIELDS(name, calls, total_seconds, self_seconds)
};

// While it lives, the CPU operations that its thread calls are timed. Timing one reads the clock twice, which takes
// well under 1 us, and does not change results. A thread may have only one OperationTimes at a time.
class OperationTimes : private base::Immovable {
 public:
  OperationTimes();
  ~OperationTimes();

  // Returns the times of the operations called since the last take, in the order of operations.h.
  std::vector<OperationTime> take();

  // Returns the OperationTimes of the calling thread, or null where it has none.
  static OperationTimes* current();

 private:
  friend class OperationTimer;
  std::vector<OperationTime> times_;  // by place in operations.h
  double inner_seconds_ = 0;          // of operations that the running one has called so far
};

// Times one call, from construction to destruction, for OperationTimes::current().
class OperationTimer : private base::Immovable {
 public:
  explicit OperationTimer(size_t place);  // `place` is the operation's index in operations.h
  ~OperationTimer();

 private:
  OperationTimes& times_;
  const size_t place_;
  const double outer_inner_seconds_;
  const double begin_seconds_;
};

}  // namespace collimate::tensor
