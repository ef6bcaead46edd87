// Readers of files that Arrow knows, in a library of its own, so that a program without such files never loads Arrow.
#include <arrow/api.h>
#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/base64.h>
#include <arrow/util/compression.h>
#include <arrow/util/utf8.h>
#include <parquet/arrow/reader.h>

#include <cmath>
#include <functional>

#include "collimate/text/arrow/arrow_files.h"

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
  if (known) return out;
  const auto scalar = array.GetScalar(row);  // the rest: dates, times, decimals
  return scalar.ok() ? json((*scalar)->ToString()) : json();
}

// Delivers the rows of one batch after those before it.
void deliver(const arrow::RecordBatch& batch, RowLocation& location, const RowSink& sink) {
  for (int64_t row = 0; row < batch.num_rows(); ++row, ++location.row) {
    Row out = json::object();
    for (int i = 0; i < batch.num_columns(); ++i) out[batch.column_name(i)] = cell(*batch.column(i), row);
    sink(location, std::move(out));
  }
}

// Gives the next batch, null after the last one.
using NextBatch = std::function<arrow::Result<std::shared_ptr<arrow::RecordBatch>>()>;

arrow::Status read_batches(const NextBatch& next, const std::string& path, const RowSink& sink) {
  RowLocation location{path, 0, 0};
  while (true) {
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, next());
    if (batch == nullptr) return arrow::Status::OK();
    deliver(*batch, location, sink);
  }
}

// Nothing but this looks whether the offsets of an Arrow file lie within it; Parquet's reader makes its own.
NextBatch checked(NextBatch next) {
  return [next = std::move(next)]() -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatch> batch, next());
    if (batch != nullptr) ARROW_RETURN_NOT_OK(batch->ValidateFull());
    return batch;
  };
}

arrow::Status read_parquet_rows(const std::string& path, const RowSink& sink) {
  ARROW_ASSIGN_OR_RAISE(const auto file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(const auto reader, parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
  reader->set_use_threads(false);
  ARROW_ASSIGN_OR_RAISE(const auto batches, reader->GetRecordBatchReader());
  return read_batches([&] { return batches->Next(); }, path, sink);
}

// Arrow's own mark of a file with an index.
constexpr std::string_view kIndexedMark = "ARROW1";

arrow::Status read_arrow_rows(const std::string& path, const RowSink& sink) {
  ARROW_ASSIGN_OR_RAISE(const auto file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(const auto mark, file->ReadAt(0, static_cast<int64_t>(kIndexedMark.size())));
  if (std::string_view(*mark) == kIndexedMark) {
    ARROW_ASSIGN_OR_RAISE(const auto reader, arrow::ipc::RecordBatchFileReader::Open(file));
    const auto next = [&, i = 0]() mutable -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
      if (i == reader->num_record_batches()) return nullptr;
      return reader->ReadRecordBatch(i++);
    };
    return read_batches(checked(next), path, sink);
  }
  ARROW_RETURN_NOT_OK(file->Seek(0));
  ARROW_ASSIGN_OR_RAISE(const auto reader, arrow::ipc::RecordBatchStreamReader::Open(file));
  return read_batches(checked([&] { return reader->Next(); }), path, sink);
}

std::string error_of(const arrow::Status& status) { return status.ok() ? "" : status.ToString(); }

// Holds a compressed file that is open. The stream ends before what it reads.
struct OpenFile {
  std::shared_ptr<arrow::io::ReadableFile> file;
  std::unique_ptr<arrow::util::Codec> codec;
  std::shared_ptr<arrow::io::CompressedInputStream> stream;

  arrow::Status read(std::string& piece) const {
    constexpr int64_t kPiece = 1 << 20;
    ARROW_ASSIGN_OR_RAISE(const auto bytes, stream->Read(kPiece));
    piece = std::string_view(*bytes);
    return arrow::Status::OK();
  }
};

arrow::Status open_compressed_file(const std::string& path, const std::string& name, NextPiece& next) {
  const auto open = std::make_shared<OpenFile>();
  ARROW_ASSIGN_OR_RAISE(open->file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(const auto type, arrow::util::Codec::GetCompressionType(name));
  ARROW_ASSIGN_OR_RAISE(open->codec, arrow::util::Codec::Create(type));
  ARROW_ASSIGN_OR_RAISE(open->stream, arrow::io::CompressedInputStream::Make(open->codec.get(), open->file));
  next = [open](std::string& piece) { return error_of(open->read(piece)); };
  return arrow::Status::OK();
}

}  // namespace

#define COLLIMATE_ENTRY extern "C" __attribute__((visibility("default"))) std::string

COLLIMATE_ENTRY collimate_read_parquet(const std::string& path, const RowSink& sink) {
  arrow::util::InitializeUTF8();
  return error_of(read_parquet_rows(path, sink));
}

COLLIMATE_ENTRY collimate_read_arrow(const std::string& path, const RowSink& sink) {
  arrow::util::InitializeUTF8();
  return error_of(read_arrow_rows(path, sink));
}

COLLIMATE_ENTRY collimate_open_compressed(const std::string& path, const std::string& codec, NextPiece& next) {
  return error_of(open_compressed_file(path, codec, next));
}

}  // namespace collimate::text
