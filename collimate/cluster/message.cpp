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
  nlohmann::json header = {{"header", message.header},
                           {"sender", message.sender},
                           {"incarnation", message.incarnation},
                           {"payload", payload}};
  wire.header = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return wire;
}

Message from_wire(Wire wire) {
  nlohmann::json parsed = nlohmann::json::parse(wire.header, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("header") || !parsed.contains("sender") ||
      !parsed.contains("incarnation"))
    throw base::RunError(base::expectation("cluster message", "a header with type, sender and incarnation",
                                           fmt::format("{} bytes", wire.header.size())));
  Message message;
  message.header = std::move(parsed["header"]);
  message.sender = parsed["sender"].get<int>();
  message.incarnation = parsed["incarnation"].get<uint64_t>();
  message.payload_header = std::move(parsed["payload"]);
  message.frames = std::move(wire.frames);
  return message;
}

Message reparse(const Message& message) { return from_wire(to_wire(message)); }

}  // namespace collimate::cluster
