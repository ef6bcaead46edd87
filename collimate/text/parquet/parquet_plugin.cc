// The Parquet reader: a library of its own, so that a program without Parquet files never loads Arrow.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/base64.h>
#include <arrow/util/utf8.h>
#include <parquet/arrow/reader.h>

#include <cmath>

#include "collimate/text/parquet/parquet.h"

namespace collimate::text {
namespace {

using json = nlohmann::ordered_json;

json cell(const arrow::Array& array, int64_t row);

template <class ArrayType>
json number(const ArrayType& array, int64_t row) {
  return array.Value(row);
}

// NaN, pandas' missing value, and infinities have no place in JSON.
template <class ArrayType>
json fraction(const ArrayType& array, int64_t row) {
  const double value = array.Value(row);
  return std::isfinite(value) ? json(value) : json();
}

// Bytes that are no text have no place in JSON.
template <class ArrayType>
json text_of(const ArrayType& array, int64_t row) {
  const std::string_view bytes = array.GetView(row);
  if (arrow::util::ValidateUTF8(bytes)) return std::string(bytes);
  json coded = json::object();
  coded["base64"] = arrow::util::base64_encode(bytes);
  return coded;
}

template <class ListType>
json list(const ListType& lists, int64_t row) {
  json out = json::array();
  const int64_t begin = lists.value_offset(row);
  for (int64_t i = 0; i < lists.value_length(row); ++i) out.push_back(cell(*lists.values(), begin + i));
  return out;
}

json structure(const arrow::StructArray& fields, int64_t row) {
  json out = json::object();
  for (int i = 0; i < fields.num_fields(); ++i) out[fields.type()->field(i)->name()] = cell(*fields.field(i), row);
  return out;
}

json map_entries(const arrow::MapArray& maps, int64_t row) {
  json out = json::array();
  for (int64_t i = maps.value_offset(row); i < maps.value_offset(row + 1); ++i) {
    out.push_back({{"key", cell(*maps.keys(), i)}, {"value", cell(*maps.items(), i)}});
  }
  return out;
}

json dictionary_value(const arrow::DictionaryArray& coded, int64_t row) {
  return cell(*coded.dictionary(), coded.GetValueIndex(row));
}

// Calls read(the array as what it is) where that is one of Arrays.
template <class... Arrays, class Read>
bool read_one_of(const arrow::Array& array, const Read& read) {
  return ((array.type_id() == Arrays::TypeClass::type_id && (read(static_cast<const Arrays&>(array)), true)) || ...);
}

json cell(const arrow::Array& array, int64_t row) {
  using namespace arrow;  // NOLINT: its arrays alone are named here
  if (array.IsNull(row)) return nullptr;
  json out;
  const bool known = read_one_of<BooleanArray, Int8Array, Int16Array, Int32Array, Int64Array, UInt8Array, UInt16Array,
                                 UInt32Array, UInt64Array>(array, [&](const auto& own) { out = number(own, row); }) ||
                     read_one_of<FloatArray, DoubleArray>(array, [&](const auto& own) { out = fraction(own, row); }) ||
                     read_one_of<StringArray, LargeStringArray, BinaryArray, LargeBinaryArray, FixedSizeBinaryArray>(
                         array, [&](const auto& own) { out = text_of(own, row); }) ||
                     read_one_of<ListArray, LargeListArray, FixedSizeListArray>(
                         array, [&](const auto& own) { out = list(own, row); }) ||
                     read_one_of<StructArray>(array, [&](const auto& own) { out = structure(own, row); }) ||
                     read_one_of<MapArray>(array, [&](const auto& own) { out = map_entries(own, row); }) ||
                     read_one_of<DictionaryArray>(array, [&](const auto& own) { out = dictionary_value(own, row); });
  return known ? out : json(array.GetScalar(row).ValueOrDie()->ToString());  // the rest: dates, times, decimals
}

std::string read_batches(parquet::arrow::FileReader& reader, const std::string& path, const RowSink& sink) {
  auto batches = reader.GetRecordBatchReader();
  if (!batches.ok()) return batches.status().ToString();
  RowLocation location{path, 0, 0};
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    const arrow::Status status = (*batches)->ReadNext(&batch);
    if (!status.ok()) return status.ToString();
    if (batch == nullptr) return "";
    for (int64_t row = 0; row < batch->num_rows(); ++row, ++location.row) {
      Row out = json::object();
      for (int i = 0; i < batch->num_columns(); ++i) out[batch->column_name(i)] = cell(*batch->column(i), row);
      sink(location, std::move(out));
    }
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) std::string collimate_read_parquet(const std::string& path,
                                                                                     const RowSink& sink) {
  arrow::util::InitializeUTF8();
  auto file = arrow::io::ReadableFile::Open(path);
  if (!file.ok()) return file.status().ToString();
  auto reader = parquet::arrow::OpenFile(*file, arrow::default_memory_pool());
  if (!reader.ok()) return reader.status().ToString();
  (*reader)->set_use_threads(false);
  return read_batches(**reader, path, sink);
}

}  // namespace collimate::text
