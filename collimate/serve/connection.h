#pragma once

#include <httplib.h>

#include <functional>
#include <string>

#include "collimate/base/deadline.h"

namespace collimate::serve {

struct ConnectionLimits {
  double read_seconds = 30;   // for a whole request to arrive, from its first byte on
  double write_seconds = 30;  // for the peer to take 64 KiB
  double idle_seconds = 30;   // until a request begins
  size_t head_bytes = 0;      // of one request's line and headers
  size_t body_bytes = 0;      // of its body as it comes over the wire
};

// One accepted socket as httplib's parser reads it: every wait has a deadline, and a peer that sends without end, or
// one byte a second, is cut off. One thread; the socket is not closed.
class Connection : public httplib::Stream {
 public:
  Connection(socket_t socket, const ConnectionLimits& limits);

  // Waits for the first byte of a request. False when the peer closed or said nothing in time, or when nothing has come
  // and `leave`, asked a few times a second, is true.
  bool wait_request(const std::function<bool(double waited_seconds)>& leave);
  // The deadline and the budget of one request start here, and the connection counts as dirty.
  void begin_request();
  // The request's head was read, and what follows is its body.
  void begin_body();
  // The whole request was read: the connection may serve another one.
  void request_read() { dirty_ = false; }
  // Keeps the connection from serving another request after this answer.
  void close_after_answer() { dirty_ = true; }
  // Says that the connection must be closed: the next request would begin with what was not read of this one.
  bool dirty() const { return dirty_ || broken_; }
  bool too_slow() const { return too_slow_; }
  bool too_large() const { return too_large_; }
  bool in_body() const { return in_body_; }

  // The connection failed, or the peer has reset it. Does not wait.
  bool peer_gone() const;
  // True once in a request: when the peer has closed its sending half. It may still read, or it has closed the whole of
  // the connection: then anything that is sent to it makes its kernel reset that, and peer_gone() says so afterwards.
  bool must_probe();
  // Sends 100 Continue before an answer begins, where one must_probe() and the request's version knows interim answers.
  void probe_before_answer();
  void allow_interim_answers(bool allowed) { interim_ = allowed; }
  // Before closing a dirty connection: the peer gets a moment to read the answer, which a reset would destroy.
  void linger();

  bool is_readable() const override { return !broken_; }
  bool is_writable() const override { return !peer_gone(); }
  ssize_t read(char* out, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  ssize_t receive();
  bool wait_for(short events, const base::Deadline& deadline) const;
  bool ended() const;             // nothing is left to read, and nothing will come
  bool seen(short events) const;  // of poll(): one of these, or a failure

  const socket_t socket_;
  const ConnectionLimits limits_;
  base::Deadline read_deadline_ = base::Deadline::never();
  std::string buffer_;  // received and not yet read
  size_t next_ = 0;     // in buffer_
  size_t budget_ = 0;   // bytes that may still be received for this request
  bool dirty_ = false;
  bool broken_ = false;
  bool too_slow_ = false;
  bool too_large_ = false;
  bool in_body_ = false;
  bool probed_ = false;
  bool interim_ = false;
};

}  // namespace collimate::serve
