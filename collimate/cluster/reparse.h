#pragma once

#include "collimate/cluster/message.h"
#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// The message as its receiver in another process would see it: header dumped and parsed, payload turned to frames.
Message reparse(const Message& message);
// The texts as a worker in another process would get them.
WorkerSpec reparse(const WorkerSpec& spec);

}  // namespace collimate::cluster
