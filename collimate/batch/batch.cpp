#include "collimate/batch/batch.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstring>

#include "collimate/base/error.h"
#include "collimate/batch/element.h"

namespace collimate::batch {

using base::InputError;

bool Batch::has(const std::string& name) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const Column& c) { return c.schema.name == name; });
}

std::vector<std::string> Batch::names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.schema.name);
  return names;
}

const Column& Batch::column(const std::string& name) const {
  for (const Column& column : columns_)
    if (column.schema.name == name) return column;
  throw InputError(base::expectation("batch", "a column \"" + name + "\"",
                                     fmt::format("columns {}", fmt::join(names(), ", ")),
                                     "a node before this one that makes it"));
}

const Column& Batch::typed(const std::string& name, ElementType type, bool ragged) const {
  const Column& found = column(name);
  if (found.schema.type != type || found.schema.ragged != ragged)
    throw InputError(
        base::expectation("batch", fmt::format("column \"{}\" of {}{}", name, ragged ? "ragged " : "", type_name(type)),
                          fmt::format("{}{}", found.schema.ragged ? "ragged " : "", type_name(found.schema.type))));
  return found;
}

void Batch::insert(Column column, int64_t rows) {
  if (columns_.empty() && rows_ == 0) rows_ = rows;
  if (rows != rows_)
    throw InputError(base::expectation("batch", fmt::format("{} rows in column \"{}\"", rows_, column.schema.name),
                                       std::to_string(rows)));
  for (Column& old : columns_) {
    if (old.schema.name == column.schema.name) {
      old = std::move(column);
      return;
    }
  }
  columns_.push_back(std::move(column));
}

void Batch::set_tensor(const ColumnSchema& schema, at::Tensor values, std::vector<int64_t> offsets) {
  const bool shape_fits = values.dim() == static_cast<int64_t>(schema.inner.size()) + 1 &&
                          std::equal(schema.inner.begin(), schema.inner.end(), values.sizes().begin() + 1);
  if (!shape_fits || values.scalar_type() != scalar_type(schema.type))
    throw InputError(base::expectation("batch",
                                       fmt::format("[n, {}] of {} in column \"{}\"", fmt::join(schema.inner, ", "),
                                                   type_name(schema.type), schema.name),
                                       fmt::format("[{}]", fmt::join(values.sizes(), ", "))));
  const int64_t count = values.size(0);
  const bool offsets_fit = schema.ragged ? !offsets.empty() && offsets.front() == 0 && offsets.back() == count &&
                                               std::is_sorted(offsets.begin(), offsets.end())
                                         : offsets.empty();
  if (!offsets_fit)
    throw InputError(base::expectation("batch",
                                       "offsets that ascend from 0 to the number of elements of ragged column \"" +
                                           schema.name + "\", none for a dense one",
                                       fmt::format("{} offsets for {} elements", offsets.size(), count)));
  const int64_t rows = schema.ragged ? static_cast<int64_t>(offsets.size()) - 1 : count;
  auto chunk = std::make_shared<Chunk>();
  chunk->values = values.contiguous();
  chunk->offsets = std::move(offsets);
  insert({schema, {{std::move(chunk), 0, rows}}}, rows);
}

void Batch::set_json(const Key<nlohmann::json>& key, std::vector<nlohmann::json> objects) {
  const auto rows = static_cast<int64_t>(objects.size());
  auto chunk = std::make_shared<Chunk>();
  chunk->objects = std::move(objects);
  insert({{.name = key.name, .type = ElementType::kJson}, {{std::move(chunk), 0, rows}}}, rows);
}

namespace {

template <class T>
ColumnSchema schema_of(const Key<T>& key, bool ragged) {
  return {key.name, Key<T>::type, key.inner, ragged};
}

template <class T>
at::Tensor tensor_of(const ColumnSchema& schema, const T* data, int64_t elements) {
  const int64_t inner = inner_count(schema);
  std::vector<int64_t> sizes = {elements / inner};
  sizes.insert(sizes.end(), schema.inner.begin(), schema.inner.end());
  at::Tensor values = at::empty(sizes, at::TensorOptions().dtype(scalar_type(schema.type)));
  if (elements > 0) std::memcpy(values.data_ptr(), data, elements * sizeof(T));
  return values;
}

}  // namespace

template <class T>
void Batch::set(const Key<T>& key, std::vector<T> values) {
  const ColumnSchema schema = schema_of(key, false);
  set_tensor(schema, tensor_of(schema, values.data(), static_cast<int64_t>(values.size())));
}

template <class T>
void Batch::set_ragged(const Key<T>& key, const std::vector<std::vector<T>>& rows) {
  const ColumnSchema schema = schema_of(key, true);
  std::vector<T> flat;
  std::vector<int64_t> offsets = {0};
  for (const auto& row : rows) {
    flat.insert(flat.end(), row.begin(), row.end());
    offsets.push_back(static_cast<int64_t>(flat.size()) / inner_count(schema));
  }
  set_tensor(schema, tensor_of(schema, flat.data(), static_cast<int64_t>(flat.size())), std::move(offsets));
}

const ChunkView& Batch::find(const Column& column, int64_t row, int64_t& local_row) const {
  if (row < 0 || row >= rows_)
    throw InputError(base::expectation(
        "batch", fmt::format("a row below {} of column \"{}\"", rows_, column.schema.name), std::to_string(row)));
  for (const ChunkView& view : column.chunks) {
    if (row < view.end - view.begin) {
      local_row = view.begin + row;
      return view;
    }
    row -= view.end - view.begin;
  }
  COLLIMATE_CHECK(false, "column {} has fewer rows than its batch", column.schema.name);
  return column.chunks.front();
}

template <class T>
T Batch::get(const Key<T>& key, int64_t row) const {
  const Column& column = typed(key.name, Key<T>::type, false);
  int64_t local = 0;
  const ChunkView& view = find(column, row, local);
  return view.chunk->values.template data_ptr<T>()[local * inner_count(column.schema)];
}

template <class T>
std::span<const T> Batch::row(const Key<T>& key, int64_t row) const {
  const Column& column = typed(key.name, Key<T>::type, key.ragged);
  int64_t local = 0;
  const ChunkView& view = find(column, row, local);
  const int64_t inner = inner_count(column.schema);
  const T* data = view.chunk->values.template data_ptr<T>();
  if (!column.schema.ragged) return {data + local * inner, static_cast<size_t>(inner)};
  const int64_t begin = view.chunk->offsets[local];
  const int64_t end = view.chunk->offsets[local + 1];
  return {data + begin * inner, static_cast<size_t>((end - begin) * inner)};
}

template <class T>
std::vector<T> Batch::all(const Key<T>& key) const {
  std::vector<T> values;
  for (int64_t i = 0; i < rows_; ++i) {
    const std::span<const T> one = row(key, i);
    values.insert(values.end(), one.begin(), one.end());
  }
  return values;
}

const nlohmann::json& Batch::json(const Key<nlohmann::json>& key, int64_t row) const {
  const Column& column = typed(key.name, ElementType::kJson, false);
  int64_t local = 0;
  return find(column, row, local).chunk->objects[local];
}

int64_t Batch::length(const std::string& name, int64_t row) const {
  const Column& found = column(name);
  int64_t local = 0;
  const ChunkView& view = find(found, row, local);
  return found.schema.ragged ? view.chunk->offsets[local + 1] - view.chunk->offsets[local] : 1;
}

void Batch::require(std::span<const std::string> wanted, const std::string& reader) const {
  for (const std::string& name : wanted)
    if (!has(name))
      throw InputError(base::expectation(reader, "a column \"" + name + "\" in its input",
                                         fmt::format("columns {}", fmt::join(names(), ", ")),
                                         "a node before it that makes \"" + name + "\""));
}

// NOLINTBEGIN(bugprone-macro-parentheses): T names a type.
#define COLLIMATE_BATCH_TYPE(T)                                                          \
  template void Batch::set<T>(const Key<T>&, std::vector<T>);                            \
  template void Batch::set_ragged<T>(const Key<T>&, const std::vector<std::vector<T>>&); \
  template T Batch::get<T>(const Key<T>&, int64_t) const;                                \
  template std::span<const T> Batch::row<T>(const Key<T>&, int64_t) const;               \
  template std::vector<T> Batch::all<T>(const Key<T>&) const;
COLLIMATE_BATCH_TYPE(uint8_t)
COLLIMATE_BATCH_TYPE(int16_t)
COLLIMATE_BATCH_TYPE(int32_t)
COLLIMATE_BATCH_TYPE(int64_t)
COLLIMATE_BATCH_TYPE(float)
#undef COLLIMATE_BATCH_TYPE
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace collimate::batch
