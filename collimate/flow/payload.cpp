#include "collimate/flow/payload.h"

#include <cstring>

#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

[[noreturn]] void wrong_payload(const cluster::Message& message, const char* expected) {
  throw base::RunError(base::expectation("message " + message.type(), expected, "something else"));
}

void put(std::string& text, const void* data, uint64_t size) {
  text.append(reinterpret_cast<const char*>(&size), sizeof size);
  text.append(static_cast<const char*>(data), size);
}

std::string_view take(std::string_view& text) {
  uint64_t size = 0;
  if (text.size() >= sizeof size) std::memcpy(&size, text.data(), sizeof size);
  if (text.size() < sizeof size || size > text.size() - sizeof size)
    throw base::RunError(
        base::expectation("packed batch", "complete fields", fmt::format("{} bytes left", text.size())));
  std::string_view field = text.substr(sizeof size, size);
  text.remove_prefix(sizeof size + size);
  return field;
}

}  // namespace

nlohmann::json BatchPayload::to_frames(std::vector<std::vector<std::byte>>& frames) const {
  nlohmann::json headers = nlohmann::json::array();
  for (const Batch& batch : batches_) {
    batch::WireBatch wire = batch::serialize(batch);
    headers.push_back({{"header", wire.header}, {"frames", wire.frames.size()}});
    for (auto& frame : wire.frames) frames.push_back(std::move(frame));
  }
  return {{"batches", headers}};
}

std::vector<Batch> batches_of(const cluster::Message& message) {
  if (message.payload) {
    auto payload = dynamic_cast<const BatchPayload*>(message.payload.get());
    if (payload == nullptr) wrong_payload(message, "batches");
    return payload->batches();
  }
  std::vector<Batch> batches;
  if (message.payload_header.is_null()) return batches;
  if (!message.payload_header.contains("batches")) wrong_payload(message, "batches");
  size_t next = 0;
  for (const nlohmann::json& header : message.payload_header["batches"]) {
    size_t count = header.at("frames").get<size_t>();
    if (count > message.frames.size() - next) wrong_payload(message, "as many frames as the header says");
    batch::WireBatch wire;
    wire.header = header.at("header").get<std::string>();
    for (size_t i = 0; i < count; ++i) wire.frames.push_back(message.frames[next++]);
    batches.push_back(batch::parse(wire));
  }
  return batches;
}

nlohmann::json WeightPayload::to_frames(std::vector<std::vector<std::byte>>& frames) const {
  for (const std::vector<float>& segment : transfer_.segments) {
    auto bytes = std::as_bytes(std::span(segment));
    frames.emplace_back(bytes.begin(), bytes.end());
  }
  return {{"version", transfer_.version}, {"checksum", transfer_.checksum}};
}

WeightTransfer transfer_of(const cluster::Message& message) {
  if (message.payload) {
    auto payload = dynamic_cast<const WeightPayload*>(message.payload.get());
    if (payload == nullptr) wrong_payload(message, "weights");
    return payload->transfer();
  }
  if (!message.payload_header.contains("checksum")) wrong_payload(message, "weights");
  WeightTransfer transfer;
  transfer.version = message.payload_header.at("version").get<uint64_t>();
  transfer.checksum = message.payload_header.at("checksum").get<uint64_t>();
  for (const auto& frame : message.frames) {
    std::vector<float> segment(frame.size() / sizeof(float));
    std::memcpy(segment.data(), frame.data(), segment.size() * sizeof(float));
    transfer.segments.push_back(std::move(segment));
  }
  return transfer;
}

std::string pack(const Batch& batch) {
  batch::WireBatch wire = batch::serialize(batch);
  std::string text;
  put(text, wire.header.data(), wire.header.size());
  for (const auto& frame : wire.frames) put(text, frame.data(), frame.size());
  return text;
}

Batch unpack(std::string_view text) {
  batch::WireBatch wire;
  wire.header = std::string(take(text));
  while (!text.empty()) {
    std::string_view field = take(text);
    auto data = reinterpret_cast<const std::byte*>(field.data());
    wire.frames.emplace_back(data, data + field.size());
  }
  return batch::parse(wire);
}

}  // namespace collimate::flow
