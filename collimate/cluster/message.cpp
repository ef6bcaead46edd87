#include "collimate/cluster/message.h"

#include "collimate/base/error.h"

namespace collimate::cluster {

Wire to_wire(const Message& message) {
  Wire wire;
  nlohmann::json payload = message.payload_header;
  if (message.payload)
    payload = message.payload->to_frames(wire.frames);
  else
    wire.frames = message.frames;
  wire.header = {{"header", message.header},
                 {"sender", message.sender},
                 {"incarnation", message.incarnation},
                 {"payload", std::move(payload)}};
  return wire;
}

Message from_wire(Wire wire) {
  nlohmann::json& parsed = wire.header;
  if (!parsed.is_object() || !parsed.contains("header") || !parsed.contains("sender") ||
      !parsed.contains("incarnation"))
    throw base::RunError(
        base::expectation("cluster message", "header, sender and incarnation", parsed.dump().substr(0, 80)));
  Message message;
  message.header = std::move(parsed["header"]);
  message.sender = parsed["sender"].get<int>();
  message.incarnation = parsed["incarnation"].get<uint64_t>();
  message.payload_header = std::move(parsed["payload"]);
  message.frames = std::move(wire.frames);
  return message;
}

}  // namespace collimate::cluster
