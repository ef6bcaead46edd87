#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/immovable.h"

namespace collimate::tensor {

// An OperationTime is what the operations of one name (operations.h) took.
struct OperationTime {
  std::string name;
  int64_t calls = 0;
  double total_seconds = 0;  // with the operations that they called
  double self_seconds = 0;   // without them

  COLLIMATE_FIELDS(name, calls, total_seconds, self_seconds)
};

// While it lives, those of the CPU's operations that its thread calls are timed. Each costs two looks at the clock,
// well under 1 us, and gives the same bits. One at a time on a thread.
class OperationTimes : private base::Immovable {
 public:
  OperationTimes();
  ~OperationTimes();

  // Returns the times of the operations called since the last take, in the order of operations.h.
  std::vector<OperationTime> take();

  // The calling thread's; null without one.
  static OperationTimes* current();

 private:
  friend class OperationTimer;
  std::vector<OperationTime> times_;  // by place in operations.h
  double inner_seconds_ = 0;          // of the operations that the running one has called
};

// Times one call, from construction to destruction, for OperationTimes::current().
class OperationTimer : private base::Immovable {
 public:
  explicit OperationTimer(size_t place);  // in operations.h
  ~OperationTimer();

 private:
  OperationTimes& times_;
  const size_t place_;
  const double outer_inner_seconds_;
  const double begin_seconds_;
};

}  // namespace collimate::tensor
