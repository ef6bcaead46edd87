#pragma once

#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/batch/batch.h"

namespace collimate::flow {

// This purpose counts memory of no planned item: rows, messages, ATen's temporaries.
constexpr const char* kRowMemory = "tensors";
// This is the account of memory that lies with the driver, beside those of the workers.
constexpr int kDriverAccount = -1;

// Moves the blocks of rows that came in a message to the account of their receiver. Throws RunError above its budget.
void take_over(const Batch& rows, int account);

// A ReceivedRows counts such rows for a worker while it handles the message. Between threads the driver keeps what it
// sends: when this ends, blocks that came so and that nobody else has received since count for the driver again.
class ReceivedRows : private base::Immovable {
 public:
  // `batches` are those of the message and outlive this. `shared` says that the driver has them too, as the message
  // came from a thread.
  ReceivedRows(const std::vector<Batch>& batches, int worker, bool shared);
  ~ReceivedRows();

 private:
  const std::vector<Batch>& batches_;
  int worker_;
  bool shared_;
};

}  // namespace collimate::flow
