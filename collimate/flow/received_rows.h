#pragma once

#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/batch/batch.h"

namespace collimate::flow {

// Purpose of what is not of a planned item: rows, messages, ATen's temporaries.
constexpr const char* kRowMemory = "tensors";
// Account of what lies with the driver, beside those of the workers.
constexpr int kDriverAccount = -1;

// Gives the blocks of rows that came in a message to the account of their receiver. RunError above its budget.
void take_over(const Batch& rows, int account);

// This counts them while a worker handles the message. Between threads the driver keeps what it sends: when this ends,
// blocks that came so and that nobody else has received since are the driver's again.
class ReceivedRows : private base::Immovable {
 public:
  // `batches`: of the message. They outlive this. `shared`: with the driver, as it came from a thread.
  ReceivedRows(const std::vector<Batch>& batches, int worker, bool shared);
  ~ReceivedRows();

 private:
  const std::vector<Batch>& batches_;
  int worker_;
  bool shared_;
};

}  // namespace collimate::flow
