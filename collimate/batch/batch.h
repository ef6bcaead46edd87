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
// [k] for a vector, [L, k] per token when `ragged` adds a leading length of its own per row.
struct ColumnSchema {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> inner;
  bool ragged = false;
  bool operator==(const ColumnSchema&) const = default;

  COLLIMATE_FIELDS(name, type, inner, ragged)
};

// A run of rows of one column. Dense: values [rows, inner…]. Ragged: values [Σ lengths, inner…] and offsets [rows + 1].
// JSON: `objects`. A chunk is immutable once it is in a batch, so that slices share it.
struct Chunk {
  at::Tensor values;
  std::vector<int64_t> offsets;
  std::vector<nlohmann::json> objects;
};

// Rows [begin, end) of a shared chunk.
struct ChunkView {
  std::shared_ptr<const Chunk> chunk;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Column {
  ColumnSchema schema;
  std::vector<ChunkView> chunks;
};

// Rows are samples, columns are declared by Key<T> anywhere; the schema travels with the batch. Slicing and
// concatenation are views; `contiguous()` copies and is counted. A value type: copies share chunks. Not thread-safe.
class Batch {
 public:
  Batch() = default;
  // A batch of `rows` rows and no columns yet.
  explicit Batch(int64_t rows) : rows_(rows) {}

  int64_t rows() const { return rows_; }
  bool empty() const { return rows_ == 0; }
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  const Column& column(const std::string& name) const;

  // Adds or replaces a column. Throws InputError when the number of rows differs (unless the batch has no columns yet).
  template <class T>
  void set(const Key<T>& key, std::vector<T> values);
  template <class T>
  void set_ragged(const Key<T>& key, const std::vector<std::vector<T>>& rows);
  void set_json(const Key<nlohmann::json>& key, std::vector<nlohmann::json> objects);
  // values [rows, inner…] or, with offsets [rows + 1], values [Σ lengths, inner…]. Takes the tensor without a copy.
  void set_tensor(const ColumnSchema& schema, at::Tensor values, std::vector<int64_t> offsets = {});

  // One row of a column, without a copy. Throws InputError naming the column, and `producer` when it is known,
  // when the column is missing or of another type.
  template <class T>
  T get(const Key<T>& key, int64_t row) const;
  template <class T>
  std::span<const T> row(const Key<T>& key, int64_t row) const;
  const nlohmann::json& json(const Key<nlohmann::json>& key, int64_t row) const;
  template <class T>
  std::vector<T> all(const Key<T>& key) const;
  int64_t length(const std::string& name, int64_t row) const;

  // Views: nothing is copied.
  Batch slice(int64_t begin, int64_t end) const;
  Batch select_columns(std::span<const std::string> names) const;
  static Batch concatenate(std::span<const Batch> parts);
  // Columns of `other` (same rows, same uids where both have them) added to this one; other's win.
  Batch merge(const Batch& other) const;
  // Rows in the order given: a copy unless the rows are consecutive.
  Batch gather(std::span<const int64_t> rows) const;
  // One chunk per column: a copy of those that have several.
  Batch contiguous() const;

  // Checks that the named columns are there; the error names the column, the reader and the columns present.
  void require(std::span<const std::string> names, const std::string& reader) const;

 private:
  const ChunkView& find(const Column& column, int64_t row, int64_t& local_row) const;
  const Column& typed(const std::string& name, ElementType type, bool ragged) const;
  void insert(Column column, int64_t rows);

  int64_t rows_ = 0;
  std::vector<Column> columns_;  // in order of insertion
};

// The wire form: a JSON header and raw frames, one per buffer. `parse` validates sizes before it allocates.
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
