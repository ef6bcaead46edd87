#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collimate/cluster/worker.h"

namespace collimate::cluster {

// Starts a worker as a child process that runs `command… --store ADDR` (empty: this program's `worker`). It inherits
// a socket, so that no address and no file of it outlives a killed run. The worker's texts are sent over the socket
// first. Its replies are sent to `driver`, and so is a Died that says how the child ended, when the connection ends.
std::unique_ptr<WorkerLink> start_process_worker(const WorkerSpec& spec, std::vector<std::string> command,
                                                 size_t capacity, std::shared_ptr<Mailbox> driver);

// Runs the child's side: joins the driver at `address`, builds its handler from the texts that come, and runs the
// worker until the driver stops it or is gone.
void join_driver(const std::string& address, const HandlerFactory& make);

}  // namespace collimate::cluster
