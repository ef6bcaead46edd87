#pragma once

#include <memory>

#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// A worker on a thread of this process. Replies go to `driver`, which must outlive the link; the driver's mailbox calls
// `poke` of every link's inbox when it has space. `make` is copied.
std::unique_ptr<WorkerLink> start_thread_worker(const WorkerSpec& spec, HandlerFactory make, size_t capacity,
                                                Mailbox& driver);

}  // namespace collimate::cluster
