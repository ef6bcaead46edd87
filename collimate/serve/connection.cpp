#include "collimate/serve/connection.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace collimate::serve {
namespace {

constexpr size_t kReceiveBytes = 16 << 10;
constexpr size_t kSendBytes = 64 << 10;
constexpr int kKernelBytes = 128 << 10;  // the socket's send buffer, before the peer counts as slow; Linux doubles it
constexpr int kLookMilliseconds = 100;   // how often an idle connection looks whether to leave
constexpr double kLingerSeconds = 1;
constexpr size_t kLingerBytes = 1 << 20;

void address_of(int (*ask)(int, sockaddr*, socklen_t*), socket_t socket, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ip = "unknown";
  port = 0;
  if (ask(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    port = ntohs(v6.sin6_port);
  }
  ip = text;
}

}  // namespace

Connection::Connection(socket_t socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {
  const int on = 1;  // no delay, as tokens go out one by one
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &kKernelBytes, sizeof(kKernelBytes));
}

bool Connection::wait_for(short events, const base::Deadline& deadline) const {
  while (true) {
    pollfd entry{.fd = socket_, .events = events, .revents = 0};
    const int ready = ::poll(&entry, 1, deadline.remaining_milliseconds());
    if (ready > 0) return true;
    if (ready == 0 && deadline.expired()) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Connection::wait_request(const std::function<bool(double)>& leave) {
  if (next_ < buffer_.size()) return true;  // the next request came with the last one
  const auto idle = base::Deadline::after(limits_.idle_seconds);
  const double begun = base::now_seconds();
  do {
    pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, std::min(kLookMilliseconds, idle.remaining_milliseconds()));
    if (ready > 0) return !ended();
    if (ready < 0 && errno != EINTR) return false;
    if (idle.expired()) return false;
  } while (!leave(base::now_seconds() - begun));
  return false;
}

void Connection::begin_request() {
  read_deadline_ = base::Deadline::after(limits_.read_seconds);
  budget_ = limits_.head_bytes;
  dirty_ = true;
  in_body_ = probed_ = false;
}

void Connection::begin_body() {
  budget_ += limits_.body_bytes;
  in_body_ = true;
}

ssize_t Connection::receive() {
  buffer_.resize(kReceiveBytes);
  next_ = 0;
  const size_t most = std::min(buffer_.size(), budget_);
  ssize_t count = 0;
  do {
    count = ::recv(socket_, buffer_.data(), most, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(count > 0 ? static_cast<size_t>(count) : 0);
  if (count > 0) budget_ -= static_cast<size_t>(count);
  errno = error;
  return count;
}

ssize_t Connection::read(char* out, size_t size) {
  while (next_ >= buffer_.size()) {
    too_large_ = too_large_ || budget_ == 0;
    if (broken_ || too_large_ || too_slow_) return -1;
    const ssize_t count = receive();
    if (count > 0) break;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      too_slow_ = !wait_for(POLLIN, read_deadline_);
      continue;
    }
    broken_ = count < 0;  // a peer that has closed its sending half still reads
    return count;
  }
  if (read_deadline_.expired()) {  // a byte now and then is too slow as well
    too_slow_ = true;
    return -1;
  }
  const size_t count = std::min(size, buffer_.size() - next_);
  std::memcpy(out, buffer_.data() + next_, count);
  next_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, size_t size) {
  const size_t wanted = std::min(size, kSendBytes);
  const auto deadline = base::Deadline::after(limits_.write_seconds);
  size_t sent = 0;
  while (sent < wanted && !broken_) {
    const ssize_t count = ::send(socket_, data + sent, wanted - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      broken_ = deadline.expired() || !wait_for(POLLOUT, deadline);
    } else if (count == 0 || errno != EINTR) {
      broken_ = true;
    }
  }
  return broken_ ? -1 : static_cast<ssize_t>(sent);
}

bool Connection::ended() const {
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count > 0) return false;
  return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool Connection::seen(short events) const {
  pollfd state{socket_, events, 0};  // poll() reports these even while received bytes are unread
  return ::poll(&state, 1, 0) > 0 && (state.revents & (events | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

bool Connection::peer_gone() const { return broken_ || seen(0); }

bool Connection::must_probe() { return !std::exchange(probed_, probed_ || seen(POLLRDHUP)) && probed_; }

void Connection::probe_before_answer() {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (interim_ && must_probe()) write(kContinue.data(), kContinue.size());
}

void Connection::linger() {
  if (broken_) return;
  ::shutdown(socket_, SHUT_WR);
  const auto deadline = base::Deadline::after(kLingerSeconds);
  for (size_t drained = 0; drained < kLingerBytes && wait_for(POLLIN, deadline);) {
    char scrap[4096];
    const ssize_t count = ::recv(socket_, scrap, sizeof(scrap), MSG_DONTWAIT);
    if (count <= 0) return;
    drained += static_cast<size_t>(count);
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  address_of(getpeername, socket_, ip, port);
}
void Connection::get_local_ip_and_port(std::string& ip, int& port) const { address_of(getsockname, socket_, ip, port); }

}  // namespace collimate::serve
