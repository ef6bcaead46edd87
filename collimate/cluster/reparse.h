#pragma once

#include <cstdint>

#include "collimate/cluster/message.h"
#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// The message as its receiver in another process would see it: header dumped and parsed, payload turned to frames.
Message reparse(const Message& message);
// The texts as a worker in another process would get them.
WorkerSpec reparse(const WorkerSpec& spec);

// The counts are of what the two functions have reparsed in this process so far.
struct Reparsed {
  int64_t specs = 0;
  int64_t of_driver = 0;   // messages that it sent
  int64_t of_workers = 0;  // messages that they sent
};
Reparsed reparsed();

}  // namespace collimate::cluster
