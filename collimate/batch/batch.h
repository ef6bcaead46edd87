#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/batch/key.h"

namespace collimate::batch {

// A schema says what one column holds and travels with the batch. `inner` is the shape of one element: [] for a number,
// [k] for a vector. A ragged column has a list of such elements in each row, of a length L that differs by row: [L, k].
struct ColumnSchema {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> inner;
  bool ragged = false;
  bool operator==(const ColumnSchema&) const = default;

  COLLIMATE_FIELDS(name, type, inner, ragged)
};

// A chunk holds a run of rows of one column. A dense column has values [rows, inner…], a ragged one values [Σ
// lengths, inner…] and offsets [rows + 1], a JSON column `objects` [rows] alone. A chunk is immutable once it is in a
// batch, so that slices can share it.
struct Chunk {
  at::Tensor values;
  std::vector<int64_t> offsets;
  std::vector<nlohmann::json> objects;
};

// A view is the rows [begin, end) of a shared chunk.
struct ChunkView {
  std::shared_ptr<const Chunk> chunk;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Column {
  ColumnSchema schema;
  std::vector<ChunkView> chunks;
};

// A batch is a table: its rows are samples, and any code may declare a column by a Key<T>. Slices and concatenations
// are views; `contiguous()` copies. A Batch is a value type whose copies share chunks. It is not thread-safe.
class Batch {
 public:
  Batch() = default;
  // Makes a batch of `rows` rows that has no columns yet.
  explicit Batch(int64_t rows) : rows_(rows) {}

  int64_t rows() const { return rows_; }
  bool empty() const { return rows_ == 0; }
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  const Column& column(const std::string& name) const;

  // These add or replace a column. They throw InputError when its number of rows is not the batch's, unless the batch
  // has neither rows nor columns yet.
  template <class T>
  void set(const Key<T>& key, std::vector<T> values);
  template <class T>
  void set_ragged(const Key<T>& key, const std::vector<std::vector<T>>& rows);
  void set_json(const Key<nlohmann::json>& key, std::vector<nlohmann::json> objects);
  // Takes values [rows, inner…] or, with offsets [rows + 1], values [Σ lengths, inner…], without a copy if they
  // are contiguous. Throws InputError too when the shape, the element type or the offsets are not as the schema says.
  void set_tensor(const ColumnSchema& schema, at::Tensor values, std::vector<int64_t> offsets = {});

  // These read a column: get() a number, row() and json() one row without a copy, all() all rows one behind the other,
  // length() the number of elements of a row. They throw InputError naming the column when it is missing, when it has
  // another type, or when the row is out of range.
  template <class T>
  T get(const Key<T>& key, int64_t row) const;
  template <class T>
  std::span<const T> row(const Key<T>& key, int64_t row) const;
  const nlohmann::json& json(const Key<nlohmann::json>& key, int64_t row) const;
  template <class T>
  std::vector<T> all(const Key<T>& key) const;
  int64_t length(const std::string& name, int64_t row) const;

  // These return views and copy nothing. concatenate() skips parts without rows; the others must have equal columns.
  Batch slice(int64_t begin, int64_t end) const;
  Batch select_columns(std::span<const std::string> names) const;
  static Batch concatenate(std::span<const Batch> parts);
  // Returns this batch with the columns of `other` added, which replace columns of equal names. Throws InputError
  // unless both have equally many rows and, where both have the column uid, equal uids in the same order.
  Batch merge(const Batch& other) const;
  // Returns the rows in the order given. Copies a column unless they are consecutive rows of one of its chunks.
  Batch gather(std::span<const int64_t> rows) const;
  // Returns the batch with one chunk per column: columns that have several chunks are copied.
  Batch contiguous() const;

  // Throws InputError when one of the named columns is missing: it names the column, `reader` and the columns present.
  void require(std::span<const std::string> names, const std::string& reader) const;

 private:
  const ChunkView& find(const Column& column, int64_t row, int64_t& local_row) const;
  const Column& typed(const std::string& name, ElementType type, bool ragged) const;
  void insert(Column column, int64_t rows);

  int64_t rows_ = 0;
  std::vector<Column> columns_;  // in order of insertion
};

// This is the form in which a batch is sent: a JSON header and raw frames, one for each buffer. `parse` checks sizes
// before it allocates, and throws RunError or InputError when frames do not fit the header.
struct WireBatch {
  std::string header;
  std::vector<std::vector<std::byte>> frames;
};
WireBatch serialize(const Batch& batch);
Batch parse(const WireBatch& wire);

}  // namespace collimate::batch

namespace collimate {
using batch::Batch;
using batch::Key;
}  // namespace collimate
