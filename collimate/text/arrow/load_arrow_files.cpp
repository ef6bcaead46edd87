#include <dlfcn.h>

#include <filesystem>
#include <map>

#include "collimate/base/error.h"
#include "collimate/host/beside_libraries.h"
#include "collimate/text/arrow/arrow_files.h"

namespace collimate::text {
namespace {

// Maps each ending to Arrow's name of its codec.
const std::map<std::string, std::string>& codecs() {
  static const std::map<std::string, std::string> all = {
      {".gz", "gzip"}, {".zst", "zstd"}, {".bz2", "bz2"}, {".lz4", "lz4"}};
  return all;
}

std::string extension_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

// Returns an entry point of the library, which reads `what`. Throws InputError, which names the `reader` as missing,
// where there is no library.
template <class Function>
Function load(const char* name, const std::string& what, const std::string& reader) {
  void* handle = host::load_beside_libraries(
      kArrowLibrary, what, "a build with " + reader,
      "`pip install pyarrow` for the Python that the build uses and configure again, or convert the file to JSONL");
  void* symbol = dlsym(handle, name);
  COLLIMATE_CHECK(symbol != nullptr, "{} has no {}", kArrowLibrary, name);
  return reinterpret_cast<Function>(symbol);
}

void require_read(const std::string& error, const std::string& path, const std::string& expected) {
  if (!error.empty())
    throw base::InputError(base::expectation(path, expected, "a damaged one or another format (" + error + ")",
                                             "getting the file again, or its rows as JSON lines"));
}

}  // namespace

void read_parquet(const std::string& path, const RowSink& sink) {
  static const auto read = load<ReadRowsFunction>(kReadParquetSymbol, "parquet", "the Parquet reader");
  require_read(read(path, sink), path, "a Parquet file that can be read");
}

void read_arrow(const std::string& path, const RowSink& sink) {
  static const auto read = load<ReadRowsFunction>(kReadArrowSymbol, "arrow", "the Arrow reader");
  require_read(read(path, sink), path, "an Arrow file that can be read");
}

bool is_compressed(const std::string& path) { return codecs().contains(extension_of(path)); }

std::string decompressed(const std::string& path) {
  static const auto read = load<DecompressFunction>(kDecompressSymbol, "compressed", "the readers of compressed files");
  const std::string& codec = codecs().at(extension_of(path));
  std::string content;
  require_read(read(path, codec, content), path, "a whole file compressed by " + codec);
  return content;
}

}  // namespace collimate::text
