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
  int64_t connections = 256;  // served at a time, each by a thread; as many wait, further ones in the kernel
};

// httplib's server with connections of our own (its own read without an end and know no deadline of a whole request).
// `accept_all` runs the loop:
//   consumes  connections from the kernel's queue; produces tasks in a bounded queue, one a connection, and waits while
//   it is full, woken by a thread that takes one; the threads serve one connection each until it ends.
class Listener : public httplib::Server {
 public:
  explicit Listener(ListenerOptions options);

  // Binds and listens; the port. InputError when the address cannot be had.
  int open(const std::string& host, int port);
  // Accepts until close(); returns when the last connection has ended. Blocking.
  void accept_all();
  // No new connections; those that are there end after the request that they are in. Any thread.
  void close();
  // Cuts every connection. Any thread.
  void cut();

  int64_t connections() const;
  bool closing() const { return closing_; }
  // Gives the connection of the request that the calling thread handles.
  static Connection& current();

 private:
  bool process_and_close_socket(socket_t socket) override;
  void serve(Connection& connection);

  const ListenerOptions options_;
  std::atomic<bool> closing_ = false;
  std::atomic<int64_t> waiting_ = 0;  // accepted connections that no thread serves yet
  std::atomic<int64_t> serving_ = 0;  // threads that serve one
  mutable std::mutex mutex_;
  std::set<socket_t> open_;
};

}  // namespace collimate::serve
