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

using nlohmann::json;

json cell(const arrow::Array& array, int64_t row);

template <class ArrayType>
json number(const arrow::Array& array, int64_t row) {
  return static_cast<const ArrayType&>(array).Value(row);
}

// NaN, pandas' missing value, and infinities have no place in JSON.
template <class ArrayType>
json fraction(const arrow::Array& array, int64_t row) {
  const double value = static_cast<const ArrayType&>(array).Value(row);
  return std::isfinite(value) ? json(value) : json();
}

// Bytes that are no text have no place in JSON.
template <class ArrayType>
json text_of(const arrow::Array& array, int64_t row) {
  const std::string_view bytes = static_cast<const ArrayType&>(array).GetView(row);
  if (arrow::util::ValidateUTF8(bytes)) return std::string(bytes);
  json coded = json::object();
  coded["base64"] = arrow::util::base64_encode(bytes);
  return coded;
}

template <class ListType>
json list(const arrow::Array& array, int64_t row) {
  const auto& lists = static_cast<const ListType&>(array);
  json out = json::array();
  const int64_t begin = lists.value_offset(row);
  for (int64_t i = 0; i < lists.value_length(row); ++i) out.push_back(cell(*lists.values(), begin + i));
  return out;
}

json structure(const arrow::Array& array, int64_t row) {
  const auto& fields = static_cast<const arrow::StructArray&>(array);
  json out = json::object();
  for (int i = 0; i < fields.num_fields(); ++i) out[fields.type()->field(i)->name()] = cell(*fields.field(i), row);
  return out;
}

json map_entries(const arrow::Array& array, int64_t row) {
  const auto& maps = static_cast<const arrow::MapArray&>(array);
  json out = json::array();
  for (int64_t i = maps.value_offset(row); i < maps.value_offset(row + 1); ++i) {
    out.push_back({{"key", cell(*maps.keys(), i)}, {"value", cell(*maps.items(), i)}});
  }
  return out;
}

json dictionary_value(const arrow::Array& array, int64_t row) {
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  return cell(*coded.dictionary(), coded.GetValueIndex(row));
}

// Numbers, and nullopt-like null for types that are no numbers.
bool number_cell(const arrow::Array& array, int64_t row, json& out) {
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return out = number<arrow::BooleanArray>(array, row), true;
    case arrow::Type::INT8:
      return out = number<arrow::Int8Array>(array, row), true;
    case arrow::Type::INT16:
      return out = number<arrow::Int16Array>(array, row), true;
    case arrow::Type::INT32:
      return out = number<arrow::Int32Array>(array, row), true;
    case arrow::Type::INT64:
      return out = number<arrow::Int64Array>(array, row), true;
    case arrow::Type::UINT8:
      return out = number<arrow::UInt8Array>(array, row), true;
    case arrow::Type::UINT16:
      return out = number<arrow::UInt16Array>(array, row), true;
    case arrow::Type::UINT32:
      return out = number<arrow::UInt32Array>(array, row), true;
    case arrow::Type::UINT64:
      return out = number<arrow::UInt64Array>(array, row), true;
    case arrow::Type::FLOAT:
      return out = fraction<arrow::FloatArray>(array, row), true;
    case arrow::Type::DOUBLE:
      return out = fraction<arrow::DoubleArray>(array, row), true;
    default:
      return false;
  }
}

json cell(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) return nullptr;
  json value;
  if (number_cell(array, row, value)) return value;
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return text_of<arrow::StringArray>(array, row);
    case arrow::Type::LARGE_STRING:
      return text_of<arrow::LargeStringArray>(array, row);
    case arrow::Type::BINARY:
      return text_of<arrow::BinaryArray>(array, row);
    case arrow::Type::LARGE_BINARY:
      return text_of<arrow::LargeBinaryArray>(array, row);
    case arrow::Type::FIXED_SIZE_BINARY:
      return text_of<arrow::FixedSizeBinaryArray>(array, row);
    case arrow::Type::LIST:
      return list<arrow::ListArray>(array, row);
    case arrow::Type::LARGE_LIST:
      return list<arrow::LargeListArray>(array, row);
    case arrow::Type::FIXED_SIZE_LIST:
      return list<arrow::FixedSizeListArray>(array, row);
    case arrow::Type::STRUCT:
      return structure(array, row);
    case arrow::Type::MAP:
      return map_entries(array, row);
    case arrow::Type::DICTIONARY:
      return dictionary_value(array, row);
    default:
      return array.GetScalar(row).ValueOrDie()->ToString();  // dates, times, decimals
  }
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
