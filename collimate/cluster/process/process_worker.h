#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// A worker as a child process that runs `command… --store ADDR` (empty: this program's `worker`), over a socket
// that it inherits, so that no address, and no file of it, outlives a killed run. Its texts go over the socket first.
// Replies, and Died with how the child ended when the connection ends, go to `driver`.
std::unique_ptr<WorkerLink> start_process_worker(const WorkerSpec& spec, std::vector<std::string> command,
                                                 size_t capacity, std::shared_ptr<Mailbox> driver);

// The child's side: joins the driver at `address`, builds its handler from the texts that come, and runs the worker
// until the driver stops it or goes away. Returns when that is so.
void join_driver(const std::string& address, const HandlerFactory& make);

}  // namespace collimate::cluster
