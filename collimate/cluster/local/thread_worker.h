#pragma once

#include <memory>

#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// Starts a worker on a thread of this process. Replies go to `driver`; the thread that reads it pokes every link's
// inbox when it has space. A thread that does not end in time at stop is abandoned with what it uses, which is a defect
// of the module that it runs.
std::unique_ptr<WorkerLink> start_thread_worker(const WorkerSpec& spec, HandlerFactory make, size_t capacity,
                                                std::shared_ptr<Mailbox> driver);

}  // namespace collimate::cluster
