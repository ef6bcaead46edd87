#include "collimate/flow/payload.h"

#include <algorithm>
#include <cstring>

#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

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

namespace collimate::cluster {

nlohmann::json FrameForm<batch::Batch>::write(const batch::Batch& batch, std::vector<Bytes>& frames) {
  batch::WireBatch wire = batch::serialize(batch);
  for (Bytes& frame : wire.frames) frames.push_back(std::move(frame));
  return {{"header", wire.header}, {"frames", wire.frames.size()}};
}

batch::Batch FrameForm<batch::Batch>::read(const nlohmann::json& description, const NextFrame& next) {
  batch::WireBatch wire;
  wire.header = description.at("header").get<std::string>();
  for (auto left = description.at("frames").get<size_t>(); left > 0; --left) wire.frames.push_back(next());
  return batch::parse(wire);
}

nlohmann::json FrameForm<std::vector<batch::Batch>>::write(const std::vector<batch::Batch>& batches,
                                                           std::vector<Bytes>& frames) {
  nlohmann::json descriptions = nlohmann::json::array();
  for (const batch::Batch& batch : batches) descriptions.push_back(FrameForm<batch::Batch>::write(batch, frames));
  return descriptions;
}

std::vector<batch::Batch> FrameForm<std::vector<batch::Batch>>::read(const nlohmann::json& description,
                                                                     const NextFrame& next) {
  std::vector<batch::Batch> batches;
  for (const nlohmann::json& one : description) batches.push_back(FrameForm<batch::Batch>::read(one, next));
  return batches;
}

using Bucket = std::shared_ptr<const flow::WeightBucket>;

nlohmann::json FrameForm<Bucket>::write(const Bucket& bucket, std::vector<Bytes>& frames) {
  if (bucket == nullptr) return nullptr;
  nlohmann::json parts = nlohmann::json::array();
  for (const auto& [slice, sum] : bucket->parts)
    parts.push_back({slice.param, slice.box.row, slice.box.rows, slice.box.column, slice.box.columns, sum});
  const auto bytes = std::as_bytes(std::span(bucket->values));
  frames.emplace_back(bytes.begin(), bytes.end());
  return {{"model", bucket->model}, {"version", bucket->version}, {"parts", parts}};
}

Bucket FrameForm<Bucket>::read(const nlohmann::json& description, const NextFrame& next) {
  if (description.is_null()) return nullptr;
  auto bucket = std::make_shared<flow::WeightBucket>();
  description.at("model").get_to(bucket->model);
  description.at("version").get_to(bucket->version);
  for (const nlohmann::json& part : description.at("parts")) {
    const auto number = [&](size_t i) { return part.at(i).get<int64_t>(); };
    bucket->parts.push_back(
        {{part.at(0).get<int>(), {number(1), number(2), number(3), number(4)}}, part.at(5).get<uint64_t>()});
  }
  const Bytes frame = next();
  bucket->values.resize(frame.size() / sizeof(float));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(bucket->values));
  std::copy_n(frame.begin(), bytes.size(), bytes.begin());
  return bucket;
}

}  // namespace collimate::cluster
