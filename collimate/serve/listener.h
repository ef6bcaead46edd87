#pragma once

#include <httplib.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "collimate/serve/connection.h"

namespace collimate::serve {

struct ListenerOptions {
  ConnectionLimits connection;
  int64_t connections = 256;  // served at a time, each by a thread; as many wait here, further ones in the kernel
};

// A Listener is httplib's server with our own connections. Those of httplib read without an end and have no deadline
// for a whole request.
// `accept_all` runs a loop:
//   consumes  connections from the kernel's queue
//   produces  tasks in a bounded queue, one for each connection; each thread serves one connection until it ends
//   waits while that queue is full; woken by a thread that takes a task
class Listener : public httplib::Server {
 public:
  explicit Listener(ListenerOptions options);

  // Binds and listens; returns the port. Throws InputError when the address cannot be bound.
  int open(const std::string& host, int port);
  // Accepts connections until close(), and returns when the last one has ended.
  void accept_all();
  // Stops accepting; open connections end after the request that they are in. Any thread may call it.
  void close();
  // Cuts every connection at once. Any thread may call it.
  void cut();

  int64_t connections() const;
  bool closing() const { return closing_; }
  // Returns the connection of the request that the calling thread handles.
  static Connection& current();

 private:
  bool process_and_close_socket(socket_t socket) override;
  void serve(Connection& connection);

  const ListenerOptions options_;
  std::atomic<bool> closing_ = false;
  std::atomic<int64_t> waiting_ = 0;  // accepted connections that no thread serves yet
  std::atomic<int64_t> serving_ = 0;  // threads that serve a connection
  mutable std::mutex mutex_;
  std::set<socket_t> open_;
};

}  // namespace collimate::serve
