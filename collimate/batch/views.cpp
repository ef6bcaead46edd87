// This file slices, joins and gathers batches: as views where possible, else as copies.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "collimate/base/error.h"
#include "collimate/batch/element.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::batch {
namespace {

int64_t view_rows(const ChunkView& view) { return view.end - view.begin; }

// Returns views of the chunks that hold rows [begin, end) of a column.
std::vector<ChunkView> cut(const std::vector<ChunkView>& chunks, int64_t begin, int64_t end) {
  std::vector<ChunkView> out;
  int64_t first = 0;
  for (const ChunkView& view : chunks) {
    const int64_t lo = std::max(begin, first);
    const int64_t hi = std::min(end, first + view_rows(view));
    if (lo < hi) out.push_back({view.chunk, view.begin + lo - first, view.begin + hi - first});
    first += view_rows(view);
  }
  return out;
}

void append_json(const std::vector<ChunkView>& chunks, Chunk& out) {
  for (const ChunkView& view : chunks)
    out.objects.insert(out.objects.end(), view.chunk->objects.begin() + view.begin,
                       view.chunk->objects.begin() + view.end);
}

// Copies the rows of all the views into one chunk.
std::shared_ptr<const Chunk> fuse(const ColumnSchema& schema, const std::vector<ChunkView>& chunks) {
  auto out = std::make_shared<Chunk>();
  if (schema.type == ElementType::kJson) {
    append_json(chunks, *out);
    return out;
  }
  int64_t elements = 0;
  if (schema.ragged) out->offsets.push_back(0);
  for (const ChunkView& view : chunks) {
    if (!schema.ragged) {
      elements += view_rows(view);
      continue;
    }
    for (int64_t r = view.begin; r < view.end; ++r) {
      elements += view.chunk->offsets[r + 1] - view.chunk->offsets[r];
      out->offsets.push_back(elements);
    }
  }
  std::vector<int64_t> sizes = {elements};
  sizes.insert(sizes.end(), schema.inner.begin(), schema.inner.end());
  out->values = at::empty(sizes, at::TensorOptions().dtype(scalar_type(schema.type)));
  const int64_t bytes = inner_count(schema) * element_bytes(schema.type);
  auto* to = static_cast<std::byte*>(out->values.data_ptr());
  for (const ChunkView& view : chunks) {
    const int64_t first = schema.ragged ? view.chunk->offsets[view.begin] : view.begin;
    const int64_t last = schema.ragged ? view.chunk->offsets[view.end] : view.end;
    if (last > first)
      std::memcpy(to, static_cast<const std::byte*>(view.chunk->values.data_ptr()) + first * bytes,
                  (last - first) * bytes);
    to += (last - first) * bytes;
  }
  return out;
}

}  // namespace

Batch Batch::slice(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > rows_)
    throw base::InputError(
        base::expectation("batch", fmt::format("a slice inside [0, {}]", rows_), fmt::format("[{}, {})", begin, end)));
  Batch out(end - begin);
  for (const Column& column : columns_) out.columns_.push_back({column.schema, cut(column.chunks, begin, end)});
  return out;
}

Batch Batch::select_columns(std::span<const std::string> names) const {
  Batch out(rows_);
  for (const std::string& name : names) out.columns_.push_back(column(name));
  return out;
}

Batch Batch::concatenate(std::span<const Batch> parts) {
  Batch out;
  for (const Batch& part : parts) {
    if (part.rows_ == 0) continue;
    if (out.rows_ == 0) {
      out = part;
      continue;
    }
    if (part.columns_.size() != out.columns_.size())
      throw base::InputError(base::expectation("batch",
                                               fmt::format("parts with the columns {}", fmt::join(out.names(), ", ")),
                                               fmt::format("{}", fmt::join(part.names(), ", "))));
    for (Column& column : out.columns_) {
      const Column& other = part.column(column.schema.name);
      if (!(other.schema == column.schema))
        throw base::InputError(base::expectation("batch",
                                                 "one schema for column " + nlohmann::json(column.schema).dump(),
                                                 nlohmann::json(other.schema).dump()));
      column.chunks.insert(column.chunks.end(), other.chunks.begin(), other.chunks.end());
    }
    out.rows_ += part.rows_;
  }
  return out;
}

Batch Batch::merge(const Batch& other) const {
  if (other.rows_ != rows_)
    throw base::InputError(
        base::expectation("batch", fmt::format("{} rows to merge", rows_), std::to_string(other.rows_)));
  if (has(kUid.name) && other.has(kUid.name) && all(kUid) != other.all(kUid))
    throw base::InputError(
        base::expectation("batch", "the same uids in the same order on both sides of a merge", "other uids"));
  Batch out = *this;
  for (const Column& column : other.columns_) out.insert(column, rows_);
  return out;
}

Batch Batch::gather(std::span<const int64_t> rows) const {
  Batch out(static_cast<int64_t>(rows.size()));
  for (const Column& column : columns_) {
    std::vector<ChunkView> views;
    for (int64_t row : rows) {
      int64_t local = 0;
      const ChunkView& view = find(column, row, local);
      if (!views.empty() && views.back().chunk == view.chunk && views.back().end == local)
        ++views.back().end;
      else
        views.push_back({view.chunk, local, local + 1});
    }
    if (views.size() > 1) views = {{fuse(column.schema, views), 0, out.rows_}};
    out.columns_.push_back({column.schema, std::move(views)});
  }
  return out;
}

Batch Batch::contiguous() const {
  Batch out(rows_);
  for (const Column& column : columns_) {
    const bool whole = column.chunks.size() == 1;
    out.columns_.push_back(
        {column.schema,
         whole ? column.chunks : std::vector<ChunkView>{{fuse(column.schema, column.chunks), 0, rows_}}});
  }
  return out;
}

}  // namespace collimate::batch
