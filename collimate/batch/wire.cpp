#include <ATen/ops/empty.h>

#include <cstring>

#include "collimate/base/error.h"
#include "collimate/batch/element.h"

namespace collimate::batch {
namespace {

using nlohmann::json;

std::vector<std::byte> to_bytes(const void* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  return bytes;
}

// Writes a column of numbers, which has one chunk, as a frame of its values and, if it is ragged, a frame of its
// offsets, which count from the column's first value on.
void write_column(const Column& column, WireBatch& out) {
  const Chunk& chunk = *column.chunks.front().chunk;
  const ChunkView& view = column.chunks.front();
  const bool ragged = column.schema.ragged;
  const int64_t first = ragged ? chunk.offsets[view.begin] : view.begin;
  const int64_t last = ragged ? chunk.offsets[view.end] : view.end;
  const int64_t bytes = inner_count(column.schema) * element_bytes(column.schema.type);
  out.frames.push_back(
      to_bytes(static_cast<const std::byte*>(chunk.values.data_ptr()) + first * bytes, (last - first) * bytes));
  if (!ragged) return;
  std::vector<int64_t> offsets(chunk.offsets.begin() + view.begin, chunk.offsets.begin() + view.end + 1);
  for (int64_t& offset : offsets) offset -= first;
  out.frames.push_back(to_bytes(offsets.data(), offsets.size() * sizeof(int64_t)));
}

const std::vector<std::byte>& next_frame(const WireBatch& wire, size_t& frame) {
  if (frame >= wire.frames.size())
    throw base::RunError(base::expectation("batch on the wire", "a frame for every buffer of the header",
                                           fmt::format("{} frames", wire.frames.size())));
  return wire.frames[frame++];
}

// Returns 0 for sizes that no element has.
int64_t bytes_of_element(const ColumnSchema& schema) {
  int64_t bytes = element_bytes(schema.type);
  for (const int64_t size : schema.inner)
    if (size <= 0 || __builtin_mul_overflow(bytes, size, &bytes)) return 0;
  return bytes;
}

void read_column(const json& entry, int64_t rows, const WireBatch& wire, size_t& frame, Batch& out) {
  const ColumnSchema schema = entry.at("schema");
  if (schema.type == ElementType::kJson) {
    out.set_json({schema.name}, entry.at("objects").get<std::vector<json>>());
    return;
  }
  const std::vector<std::byte>& values = next_frame(wire, frame);
  const int64_t bytes = bytes_of_element(schema);
  if (bytes <= 0 || static_cast<int64_t>(values.size()) % bytes != 0)
    throw base::RunError(base::expectation(
        "batch on the wire", fmt::format("whole elements of {} bytes in column \"{}\"", bytes, schema.name),
        fmt::format("{} bytes", values.size())));
  std::vector<int64_t> offsets;
  if (schema.ragged) {
    const std::vector<std::byte>& raw = next_frame(wire, frame);
    if (raw.size() != static_cast<size_t>(rows + 1) * sizeof(int64_t))
      throw base::RunError(base::expectation("batch on the wire",
                                             fmt::format("{} offsets of column \"{}\"", rows + 1, schema.name),
                                             fmt::format("{} bytes", raw.size())));
    offsets.resize(rows + 1);
    std::memcpy(offsets.data(), raw.data(), raw.size());
  }
  std::vector<int64_t> sizes = {static_cast<int64_t>(values.size()) / bytes};
  sizes.insert(sizes.end(), schema.inner.begin(), schema.inner.end());
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(scalar_type(schema.type)));
  if (!values.empty()) std::memcpy(tensor.data_ptr(), values.data(), values.size());
  out.set_tensor(schema, std::move(tensor), std::move(offsets));
}

}  // namespace

WireBatch serialize(const Batch& batch) {
  WireBatch out;
  json header = {{"rows", batch.rows()}, {"columns", json::array()}};
  const Batch whole = batch.contiguous();
  for (const std::string& name : whole.names()) {
    const Column& column = whole.column(name);
    json entry = {{"schema", column.schema}};
    if (column.schema.type == ElementType::kJson) {
      json objects = json::array();
      for (int64_t i = 0; i < whole.rows(); ++i) objects.push_back(whole.json({name}, i));
      entry["objects"] = std::move(objects);
    } else {
      write_column(column, out);
    }
    header["columns"].push_back(std::move(entry));
  }
  out.header = header.dump();
  return out;
}

Batch parse(const WireBatch& wire) {
  const json header = json::parse(wire.header);
  const int64_t rows = header.at("rows");
  Batch out(rows);
  size_t frame = 0;
  for (const json& entry : header.at("columns")) read_column(entry, rows, wire, frame, out);
  if (out.rows() != rows)
    throw base::RunError(
        base::expectation("batch on the wire", fmt::format("{} rows", rows), fmt::format("columns of {}", out.rows())));
  return out;
}

}  // namespace collimate::batch
