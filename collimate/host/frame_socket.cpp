#include "collimate/host/frame_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "collimate/base/error.h"
#include "collimate/host/pipe_io.h"

namespace collimate::host {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little endian");
constexpr uint32_t kFrameMagic = 0x31464c43;        // "CLF1"
constexpr size_t kJoinedBytes = 1 << 16;            // a frame up to this size leaves in one write
constexpr size_t kTrustedBytes = size_t{16} << 20;  // allocated on a peer's word; beyond it memory grows as data comes

struct Prefix {
  uint32_t magic = kFrameMagic;
  uint32_t buffers = 0;
  uint64_t header_bytes = 0;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[noreturn]] void refuse(const std::string& peer, const std::string& expected, const std::string& got) {
  throw base::RunError(base::expectation("frame from " + peer, expected, got));
}

// Waits until the descriptor is ready. Returns false when the deadline passes first.
bool wait_ready(int fd, short events, const base::Deadline& deadline) {
  for (;;) {
    pollfd ready{fd, events, 0};
    const int count = ::poll(&ready, 1, deadline.remaining_milliseconds());
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) throw_io_error("poll", "to wait for a peer", errno);
    if (count == 0 && deadline.expired()) return false;
  }
}

void write_all(int fd, std::span<const std::byte> data, const std::string& peer, base::Deadline& deadline) {
  while (!data.empty()) {
    const ssize_t count = write_without_signal(fd, data.data(), data.size());
    if (count > 0) {
      data = data.subspan(static_cast<size_t>(count));
      deadline.renew();
    } else if (errno == EAGAIN) {
      if (wait_ready(fd, POLLOUT, deadline)) continue;
      throw base::RunError(base::expectation("frame to " + peer,
                                             fmt::format("the peer to read within {} s", deadline.limit_seconds()),
                                             "no progress: we wait for " + peer));
    } else if (errno != EINTR) {
      throw base::RunError(base::expectation("frame to " + peer, "an open connection", std::strerror(errno)));
    }
  }
}

}  // namespace

FrameSocket::FrameSocket(FileDescriptor socket, std::string peer, FrameLimits limits)
    : FrameSocket(std::move(socket), FileDescriptor(), std::move(peer), limits) {}

FrameSocket::FrameSocket(FileDescriptor read_from, FileDescriptor write_to, std::string peer, FrameLimits limits)
    : input_(std::move(read_from)), output_(std::move(write_to)), peer_(std::move(peer)), limits_(limits) {
  set_nonblocking(input_.get());
  if (output_.valid()) set_nonblocking(output_.get());
}

std::pair<FileDescriptor, FileDescriptor> FrameSocket::make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_io_error("socket", "to be made", errno);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

FrameSocket inherited_socket(const std::string& address, std::string peer) {
  int number = -1;
  const char* end = address.data() + address.size();
  const bool read = address.starts_with("fd:") && std::from_chars(address.data() + 3, end, number).ptr == end;
  if (!read || number < 3 || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
    throw base::InputError(base::expectation("address", "fd:N, the number of an open socket", "\"" + address + "\""));
  return {FileDescriptor(number), std::move(peer)};
}

void FrameSocket::send(const nlohmann::json& header, std::span<const std::span<const std::byte>> buffers,
                       const base::Deadline& deadline) {
  COLLIMATE_CHECK(input_.valid(), "send after close");
  const std::string text = header.dump();
  const Prefix prefix{kFrameMagic, static_cast<uint32_t>(buffers.size()), text.size()};
  std::string joined(reinterpret_cast<const char*>(&prefix), sizeof prefix);
  size_t total = text.size();
  for (const auto& buffer : buffers) {
    const uint64_t size = buffer.size();
    joined.append(reinterpret_cast<const char*>(&size), sizeof size);
    total += buffer.size();
  }
  joined += text;
  base::Deadline left = deadline;
  if (total > kJoinedBytes) {
    write_all(output(), bytes_of(joined), peer_, left);
    for (const auto& buffer : buffers) write_all(output(), buffer, peer_, left);
    return;
  }
  for (const auto& buffer : buffers) joined.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  write_all(output(), bytes_of(joined), peer_, left);
}

// Reads at least one byte. Returns 0 at the end of the stream.
size_t FrameSocket::read_some(std::span<std::byte> out, base::Deadline& deadline) {
  for (;;) {
    const ssize_t count = ::read(input_.get(), out.data(), out.size());
    if (count >= 0) {
      if (limits_.bytes_renew) deadline.renew();
      return static_cast<size_t>(count);
    }
    if (errno == EAGAIN) {
      if (wait_ready(input_.get(), POLLIN, deadline)) continue;
      refuse(peer_, fmt::format("data within {} s", deadline.limit_seconds()), "none: we wait for " + peer_);
    }
    if (errno == ECONNRESET) return 0;
    if (errno != EINTR) refuse(peer_, "an open connection", std::strerror(errno));
  }
}

void FrameSocket::read_all(std::span<std::byte> out, base::Deadline& deadline) {
  while (!out.empty()) {
    const size_t count = read_some(out, deadline);
    if (count == 0) refuse(peer_, "a whole frame", "the end of the connection: the peer closed it or died");
    out = out.subspan(count);
  }
}

std::vector<std::byte> FrameSocket::read_buffer(uint64_t size, base::Deadline& deadline) {
  std::vector<std::byte> out;
  while (out.size() < size) {
    const size_t begin = out.size();
    out.resize(std::min<uint64_t>(size, std::max(kTrustedBytes, 2 * begin)));
    read_all(std::span(out).subspan(begin), deadline);
  }
  return out;
}

std::optional<Frame> FrameSocket::receive(const base::Deadline& deadline) {
  COLLIMATE_CHECK(input_.valid(), "receive after close");
  base::Deadline left = deadline;
  Prefix prefix;
  const auto raw = std::as_writable_bytes(std::span(&prefix, 1));
  const size_t first = read_some(raw, left);
  if (first == 0) return std::nullopt;
  read_all(raw.subspan(first), left);
  if (prefix.magic != kFrameMagic) refuse(peer_, "the magic number of a frame", fmt::format("{:#010x}", prefix.magic));
  if (prefix.header_bytes > limits_.header_bytes) {
    refuse(peer_, fmt::format("a header of at most {} bytes", limits_.header_bytes),
           std::to_string(prefix.header_bytes));
  }
  if (prefix.buffers > limits_.buffers) {
    refuse(peer_, fmt::format("at most {} buffers", limits_.buffers), std::to_string(prefix.buffers));
  }
  std::vector<uint64_t> sizes(prefix.buffers);
  read_all(std::as_writable_bytes(std::span(sizes)), left);
  uint64_t room = limits_.total_bytes;
  for (const uint64_t size : sizes) {
    if (size > room) refuse(peer_, fmt::format("at most {} bytes", limits_.total_bytes), "a longer frame");
    room -= size;
  }
  const auto text = read_buffer(prefix.header_bytes, left);
  Frame frame;
  frame.header = nlohmann::json::parse(reinterpret_cast<const char*>(text.data()),
                                       reinterpret_cast<const char*>(text.data()) + text.size(), nullptr, false);
  if (frame.header.is_discarded()) refuse(peer_, "a JSON header", "malformed text");
  for (const uint64_t size : sizes) frame.buffers.push_back(read_buffer(size, left));
  return frame;
}

Frame FrameSocket::expect_frame(const base::Deadline& deadline) {
  auto frame = receive(deadline);
  if (!frame) refuse(peer_, "a frame", "the end of the connection: the peer closed it or died");
  return std::move(*frame);
}

bool FrameSocket::readable(const base::Deadline& deadline) const { return wait_ready(input_.get(), POLLIN, deadline); }

void FrameSocket::close() {
  input_.reset();
  output_.reset();
}

}  // namespace collimate::host
