#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/host/file_io.h"

namespace collimate::host {

// A Frame is a message: a small JSON header and raw buffers.
struct Frame {
  nlohmann::json header;
  std::vector<std::vector<std::byte>> buffers;
};

struct FrameLimits {
  uint64_t header_bytes = 64ULL << 20;
  uint64_t buffers = 1ULL << 16;
  uint64_t total_bytes = 16ULL << 30;
  bool bytes_renew = true;  // arriving bytes renew the deadline; false for a peer that may stall on purpose
};

// A FrameSocket sends and receives frames over a socket or a pair of pipes. At a time one thread may send and one may
// receive. When the peer has closed, a deadline has passed, or a frame is malformed or too long, it throws RunError
// naming the peer; after that the connection is unusable. On the wire (little endian): u32 magic, u32 count of buffers,
// u64 header bytes, u64 bytes of each buffer, then all bytes.
class FrameSocket {
 public:
  FrameSocket(FileDescriptor socket, std::string peer, FrameLimits limits = {});
  FrameSocket(FileDescriptor read_from, FileDescriptor write_to, std::string peer, FrameLimits limits = {});
  // Returns two connected ends in this process, of which one can be given to a child.
  static std::pair<FileDescriptor, FileDescriptor> make_pair();

  void send(const nlohmann::json& header, std::span<const std::span<const std::byte>> buffers,
            const base::Deadline& deadline);
  void send(const nlohmann::json& header, const base::Deadline& deadline) { send(header, {}, deadline); }
  // Returns the next frame, or nothing when the peer closed between two frames. The bytes of a frame renew the deadline
  // as they arrive, unless the limits say otherwise.
  std::optional<Frame> receive(const base::Deadline& deadline);
  // Does the same, but throws RunError when the peer closed.
  Frame expect_frame(const base::Deadline& deadline);
  // Waits until a frame or the end of the connection has begun to arrive. Returns false when the deadline passes first.
  bool readable(const base::Deadline& deadline) const;
  // Returns the descriptor to poll for reading.
  int descriptor() const { return input_.get(); }
  const std::string& peer() const { return peer_; }
  void close();

 private:
  int output() const { return output_.valid() ? output_.get() : input_.get(); }
  size_t read_some(std::span<std::byte> out, base::Deadline& deadline);
  void read_all(std::span<std::byte> out, base::Deadline& deadline);
  std::vector<std::byte> read_buffer(uint64_t size, base::Deadline& deadline);

  FileDescriptor input_;
  FileDescriptor output_;  // invalid when input_ serves both directions
  std::string peer_;
  FrameLimits limits_;
};

// Returns the end of a socket pair that this process was started with; its address is "fd:N". Throws InputError for
// another address and for a descriptor that is not open.
FrameSocket inherited_socket(const std::string& address, std::string peer);

}  // namespace collimate::host
