#include "collimate/recipe/tensorboard.h"

#include <bit>
#include <cstdint>
#include <span>

#include "collimate/base/error.h"
#include "collimate/host/checksum.h"

namespace collimate::recipe {
namespace {

// Protocol buffers: a field is its number and wire type, then its value, little end first.
enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class T>
void put_fixed(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xffU);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, unsigned field, WireType type) { put_varint(out, field << 3 | type); }

void put_bytes(std::string& out, unsigned field, const std::string& value) {
  put_key(out, field, kBytes);
  put_varint(out, value.size());
  out += value;
}

std::string event(double wall_seconds, int64_t step) {
  std::string out;
  put_key(out, 1, kFixed64);
  put_fixed(out, std::bit_cast<uint64_t>(wall_seconds));
  if (step == 0) return out;  // the default, which proto3 leaves out
  put_key(out, 2, kVarint);
  put_varint(out, static_cast<uint64_t>(step));
  return out;
}

std::string scalar(const std::string& name, double value) {
  std::string out;
  put_bytes(out, 1, name);
  put_key(out, 2, kFixed32);
  put_fixed(out, std::bit_cast<uint32_t>(static_cast<float>(value)));
  return out;
}

void put_masked_crc(std::string& out, const std::string& data) {
  const uint32_t crc = host::crc32c(std::as_bytes(std::span(data)));
  put_fixed(out, static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8U));
}

}  // namespace

TensorboardWriter::TensorboardWriter(const std::filesystem::path& directory, double wall_start,
                                     const std::vector<base::MetricsRecord>& earlier)
    : path_(directory / "events.out.tfevents.0.collimate"), wall_start_(wall_start) {
  std::filesystem::create_directories(directory);
  file_.open(path_, std::ios::binary | std::ios::trunc);
  std::string head = event(wall_start, 0);
  put_bytes(head, 3, "brain.Event:2");
  write(head);
  for (const base::MetricsRecord& record : earlier) append(record);
}

void TensorboardWriter::append(const base::MetricsRecord& record) {
  std::string summary;
  for (const auto& [name, value] : record.values) put_bytes(summary, 1, scalar(name, value));
  std::string one = event(wall_start_ + record.time_seconds, record.step);
  put_bytes(one, 5, summary);
  write(one);
}

void TensorboardWriter::write(const std::string& event) {
  std::string frame;
  put_fixed(frame, static_cast<uint64_t>(event.size()));
  put_masked_crc(frame, std::string(frame));
  frame += event;
  put_masked_crc(frame, event);
  file_ << frame << std::flush;
  if (!file_) throw base::RunError(base::expectation(path_.string(), "a write", "an error of the disk"));
}

}  // namespace collimate::recipe
