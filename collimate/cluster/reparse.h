#pragma once

#include "collimate/cluster/message.h"
#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// Returns the message as its receiver in another process would see it: the header is dumped and parsed, the payload
// turned into frames.
Message reparse(const Message& message);
// Returns the spec as a worker in another process would get it.
WorkerSpec reparse(const WorkerSpec& spec);

}  // namespace collimate::cluster
