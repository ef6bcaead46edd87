#include "collimate/cluster/message.h"

#include "collimate/base/error.h"

namespace collimate::cluster {
namespace {

constexpr size_t kShownBytes = 80;

std::string sender_of(const Message& message) {
  return message.sender < 0 ? "the driver" : fmt::format("worker {}", message.sender);
}

[[noreturn]] void refuse(const Message& message, const std::string& expected, const std::string& got) {
  const std::string where = fmt::format("message '{}' of {}", message.kind(), sender_of(message));
  throw base::RunError(base::expectation(where, expected, got, "the same version of Collimate on both sides"));
}

}  // namespace

std::string Message::kind() const {
  if (content) return std::string(content->kind());
  const auto found = wire.header.find("kind");
  return found == wire.header.end() || !found->is_string() ? "" : found->get<std::string>();
}

Wire to_wire(const Message& message) {
  Wire wire = message.content ? message.content->to_wire() : message.wire;
  wire.header = {{"sender", message.sender}, {"incarnation", message.incarnation}, {"content", std::move(wire.header)}};
  return wire;
}

Message from_wire(Wire wire) {
  nlohmann::json& parsed = wire.header;
  const auto has_number = [&](const char* key) { return parsed.contains(key) && parsed[key].is_number_integer(); };
  if (!parsed.is_object() || !parsed.contains("content") || !has_number("sender") || !has_number("incarnation"))
    throw base::RunError(
        base::expectation("cluster message", "content, sender and incarnation", parsed.dump().substr(0, kShownBytes)));
  Message message;
  message.sender = parsed["sender"].get<int>();
  message.incarnation = parsed["incarnation"].get<uint64_t>();
  message.wire = {std::move(parsed["content"]), std::move(wire.frames)};
  return message;
}

void ContentReader::read_field(const char* name, const std::function<void(const nlohmann::json&)>& set) const {
  const auto found = message_.wire.header.find(name);
  if (found == message_.wire.header.end()) refuse(message_, fmt::format("a field '{}'", name), "none");
  try {
    set(*found);
  } catch (const std::exception& error) {
    refuse(message_, fmt::format("a field '{}' that can be read", name),
           fmt::format("{}: {}", found->dump().substr(0, kShownBytes), error.what()));
  }
}

Bytes ContentReader::next_frame() {
  std::vector<Bytes>& frames = message_.wire.frames;
  if (frames_read_ == frames.size()) throw base::RunError(fmt::format("{} frames are not all", frames.size()));
  return std::move(frames[frames_read_++]);
}

void ContentReader::finish() const {
  const size_t count = message_.wire.frames.size();
  if (frames_read_ != count) refuse(message_, fmt::format("{} frames", frames_read_), std::to_string(count));
}

void refuse_kind(const Message& message, const std::vector<std::string_view>& known) {
  refuse(message, fmt::format("one of {}", fmt::join(known, ", ")), "another kind");
}

}  // namespace collimate::cluster
