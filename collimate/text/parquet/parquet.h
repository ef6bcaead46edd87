#pragma once

#include <string>

#include "collimate/text/rows.h"

namespace collimate::text {

// Rows of a Parquet file, column by column as JSON: integers, floats, booleans, text, lists, structs, maps (as lists of
// {key, value}); dates, times and decimals as text; binary columns as text where a value is UTF-8, else as
// {"base64": TEXT}; NaN and infinities as null, a missing value. The reader is a library of its own, loaded at the
// first call. Throws InputError: not a Parquet file, a column type without a JSON form, or a build without the reader.
void read_parquet(const std::string& path, const RowSink& sink);

// The entry point of that library: returns an error for the user, empty when all rows were delivered.
using ReadParquetFunction = std::string (*)(const std::string& path, const RowSink& sink);
inline constexpr const char* kReadParquetSymbol = "collimate_read_parquet";
inline constexpr const char* kParquetLibrary = "collimate_parquet.so";

}  // namespace collimate::text
