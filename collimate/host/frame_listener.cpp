#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/host/frame_socket.h"

namespace collimate::host {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

[[noreturn]] void bad_address(const std::string& text) {
  throw base::InputError(base::expectation("address", "unix:/path (at most 107 bytes) or tcp:127.0.0.1:port",
                                           fmt::format("\"{}\"", text)));
}

Address unix_address(const std::string& path, const std::string& text) {
  Address address;
  auto& name = reinterpret_cast<sockaddr_un&>(address.storage);
  if (path.empty() || path.size() >= sizeof name.sun_path) bad_address(text);
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  address.size = sizeof name;
  return address;
}

Address tcp_address(const std::string& host_and_port, const std::string& text) {
  const size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos) bad_address(text);
  const std::string host = host_and_port.substr(0, colon);
  uint16_t port = 0;
  const char* end = host_and_port.data() + host_and_port.size();
  const auto [stop, error] = std::from_chars(host_and_port.data() + colon + 1, end, port);
  Address address;
  auto& name = reinterpret_cast<sockaddr_in&>(address.storage);
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  address.size = sizeof name;
  const bool known = ::inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host.c_str(), &name.sin_addr) == 1;
  if (!known || error != std::errc() || stop != end) bad_address(text);
  return address;
}

Address parse_address(const std::string& text) {
  if (text.rfind("unix:", 0) == 0) return unix_address(text.substr(5), text);
  if (text.rfind("tcp:", 0) == 0) return tcp_address(text.substr(4), text);
  bad_address(text);
}

FileDescriptor open_socket(const Address& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) throw_io_error("socket", "to be made", errno);
  return socket;
}

// A small message must not wait for an acknowledgement of the one before.
void send_at_once(int fd, int family) {
  const int yes = 1;
  if (family == AF_INET) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

FrameListener::FrameListener(const std::string& address) : address_(address) {
  const Address parsed = parse_address(address);
  socket_ = open_socket(parsed);
  const int yes = 1;
  if (parsed.family() == AF_INET) ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket_.get(), parsed.get(), parsed.size) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0) {
    throw base::InputError(base::expectation(address, "an address to listen at", std::strerror(errno)));
  }
  if (parsed.family() != AF_INET) return;
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  address_ = address.substr(0, address.rfind(':') + 1) + std::to_string(ntohs(bound.sin_port));
}

FrameListener::~FrameListener() {
  if (socket_.valid() && address_.rfind("unix:", 0) == 0) ::unlink(address_.c_str() + 5);
}

FrameSocket FrameListener::accept(const base::Deadline& deadline, std::string peer, FrameLimits limits) {
  for (;;) {
    pollfd ready{socket_.get(), POLLIN, 0};
    const int count = ::poll(&ready, 1, deadline.remaining_milliseconds());
    if (count == 0 && deadline.expired()) {
      throw base::RunError(base::expectation(address_,
                                             fmt::format("{} to connect within {} s", peer, deadline.limit_seconds()),
                                             "nobody: we wait for " + peer));
    }
    if (count <= 0) continue;
    FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) continue;
    send_at_once(socket.get(), address_.rfind("tcp:", 0) == 0 ? AF_INET : AF_UNIX);
    return {std::move(socket), std::move(peer), limits};
  }
}

FrameSocket connect_frames(const std::string& address, const base::Deadline& deadline, std::string peer,
                           FrameLimits limits) {
  constexpr auto kRetry = std::chrono::milliseconds(5);
  const Address parsed = parse_address(address);
  for (;;) {
    FileDescriptor socket = open_socket(parsed);
    if (::connect(socket.get(), parsed.get(), parsed.size) == 0) {
      send_at_once(socket.get(), parsed.family());
      return {std::move(socket), std::move(peer), limits};
    }
    const int error_number = errno;
    const bool later =
        error_number == ECONNREFUSED || error_number == ENOENT || error_number == EAGAIN || error_number == EINTR;
    if (!later || deadline.expired()) {
      throw base::RunError(base::expectation(address,
                                             fmt::format("{} to listen within {} s", peer, deadline.limit_seconds()),
                                             fmt::format("{}: we wait for {}", std::strerror(error_number), peer)));
    }
    std::this_thread::sleep_for(kRetry);
  }
}

}  // namespace collimate::host
