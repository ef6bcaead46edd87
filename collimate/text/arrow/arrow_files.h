#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <string>

#include "collimate/text/rows.h"

// The libraries of the pyarrow package read these files, by a library of our own that is loaded at the first call. Each
// reading function throws InputError in a build without it, which says how to get it.
namespace collimate::text {

// Reads the rows of a Parquet file, column by column as JSON: integers, floats, booleans, text, lists, structs, maps
// (as lists of {key, value}); dates, times, decimals and all other types as Arrow's text; binary columns as text where
// a value is UTF-8, else as {"base64": TEXT}; NaN and infinities as null, a missing value. Throws InputError for a file
// that Arrow cannot read as Parquet.
void read_parquet(const std::string& path, const RowSink& sink);

// Reads the rows of an Arrow file as read_parquet does, in either of its forms: the stream that Hugging Face's
// `datasets` writes and the file with an index.
void read_arrow(const std::string& path, const RowSink& sink);

// Returns whether the path's ending is that of a compressed file (.gz .zst .bz2 .lz4).
bool is_compressed(const std::string& path);
// Opens a compressed file, whose content is then read in pieces of 1 MiB. The stream throws InputError where the file
// is damaged or ends early.
std::unique_ptr<std::istream> open_compressed(const std::string& path);
// Returns all that a compressed file holds. Throws as such a stream.
std::string decompressed(const std::string& path);

// These are the entry points of that library; each returns an error for the user, empty where all went well. So does
// what gives the next piece of a compressed file: "" at its end.
using ReadRowsFunction = std::string (*)(const std::string& path, const RowSink& sink);
using NextPiece = std::function<std::string(std::string& piece)>;
using OpenCompressedFunction = std::string (*)(const std::string& path, const std::string& codec, NextPiece& next);
inline constexpr const char* kReadParquetSymbol = "collimate_read_parquet";
inline constexpr const char* kReadArrowSymbol = "collimate_read_arrow";
inline constexpr const char* kOpenCompressedSymbol = "collimate_open_compressed";
inline constexpr const char* kArrowLibrary = "collimate_arrow.so";

}  // namespace collimate::text
