#pragma once

#include <httplib.h>

#include <functional>
#include <string>

#include "collimate/base/deadline.h"

namespace collimate::serve {

struct ConnectionLimits {
  double read_seconds = 30;   // for a whole request to arrive, counted from its first byte
  double write_seconds = 30;  // for the peer to take 64 KiB
  double idle_seconds = 30;   // for the next request to begin
  size_t head_bytes = 0;      // most bytes of a request's first line and headers
  size_t body_bytes = 0;      // most bytes of a request's body on the wire
};

// A Connection is one accepted socket in the form that httplib's parser reads. Every wait has a deadline, and a peer
// that sends without end, or one byte a second, is cut off. Use it from one thread; it does not close the socket.
class Connection : public httplib::Stream {
 public:
  Connection(socket_t socket, const ConnectionLimits& limits);

  // Waits for the first byte of a request. Returns false when the peer closed or sent nothing in time, or when nothing
  // has come and `leave`, which is asked a few times a second, returns true.
  bool wait_request(const std::function<bool(double waited_seconds)>& leave);
  // Starts the deadline and the budget of one request. The connection counts as dirty until request_read().
  void begin_request();
  // Says that the request's head was read, and adds the budget of its body.
  void begin_body();
  // Says that the whole request was read, so that the connection may serve another one.
  void request_read() { dirty_ = false; }
  // Keeps the connection from serving another request after this answer.
  void close_after_answer() { dirty_ = true; }
  // Returns whether the connection must be closed, because it is broken, or the next request would begin with unread
  // bytes of this one.
  bool dirty() const { return dirty_ || broken_; }
  bool too_slow() const { return too_slow_; }
  bool too_large() const { return too_large_; }
  bool in_body() const { return in_body_; }

  // Returns whether the connection failed or the peer has reset it. Does not wait.
  bool peer_gone() const;
  // Returns true once in a request, when the peer has closed its sending half. The peer may still read, or it may have
  // closed the whole connection: then its kernel answers anything that is sent with a reset, and peer_gone() says so
  // afterwards.
  bool must_probe();
  // Sends 100 Continue as a probe, before an answer begins, if must_probe() says so and interim answers are allowed,
  // that is, known to the request's HTTP version.
  void probe_before_answer();
  void allow_interim_answers(bool allowed) { interim_ = allowed; }
  // Gives the peer a moment to read the answer before a dirty connection is closed: a reset would destroy the answer.
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
  bool ended() const;             // whether nothing is left to read and nothing will come
  bool seen(short events) const;  // whether poll() reports one of these events, or a failure

  const socket_t socket_;
  const ConnectionLimits limits_;
  base::Deadline read_deadline_ = base::Deadline::never();
  std::string buffer_;  // received and not yet read
  size_t next_ = 0;     // index in buffer_ of the next byte to read
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
