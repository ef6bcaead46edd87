#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::cluster {

// A message on the wire: one JSON header and raw frames.
struct Wire {
  nlohmann::json header;
  std::vector<std::vector<std::byte>> frames;
};

// A payload is what a message carries besides its header. Between threads the object itself is moved; between processes
// it goes as frames. Immutable once sent.
class Payload {
 public:
  virtual ~Payload() = default;
  // A description for the header and the raw frames, from which the receiver builds an equal object.
  virtual nlohmann::json to_frames(std::vector<std::vector<std::byte>>& frames) const = 0;
};

// One message. It has either a payload (it came from a thread of this process) or, when it came over a wire, the
// payload's description and frames.
struct Message {
  nlohmann::json header;     // "type" and what the type needs
  int sender = -1;           // rank of the worker; -1 is the driver
  uint64_t incarnation = 0;  // of the worker that sends or receives it
  std::shared_ptr<const Payload> payload;
  nlohmann::json payload_header;
  std::vector<std::vector<std::byte>> frames;

  std::string type() const { return header.value("type", ""); }
};

Wire to_wire(const Message& message);
// RunError when the header is not what to_wire writes.
Message from_wire(Wire wire);

}  // namespace collimate::cluster
