#include "collimate/recipe/tensorboard.h"

#include <cstdint>
#include <span>

#include "collimate/base/error.h"
#include "collimate/host/checksum.h"
#include "collimate/recipe/protobuf.h"

namespace collimate::recipe {
namespace {

ProtobufMessage event(double wall_seconds, int64_t step) {
  ProtobufMessage out;
  out.add_double(1, wall_seconds).add_int(2, step);
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
  write(event(wall_start, 0).add_text(3, "brain.Event:2").bytes());
  for (const base::MetricsRecord& record : earlier) append(record);
}

void TensorboardWriter::append(const base::MetricsRecord& record) {
  ProtobufMessage summary;
  for (const auto& [name, value] : record.values) {
    ProtobufMessage scalar;
    scalar.add_text(1, name).add_float(2, static_cast<float>(value));
    summary.add_message(1, scalar);
  }
  write(event(wall_start_ + record.time_seconds, record.step).add_message(5, summary).bytes());
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
