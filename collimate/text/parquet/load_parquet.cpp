#include <dlfcn.h>

#include "collimate/base/error.h"
#include "collimate/host/beside_libraries.h"
#include "collimate/text/parquet/parquet.h"

namespace collimate::text {
namespace {

ReadParquetFunction load_reader() {
  void* handle = host::load_beside_libraries(
      kParquetLibrary, "parquet", "a build with the Parquet reader",
      "`pip install pyarrow` for the Python that the build uses and configure again, or convert the file to JSONL");
  void* symbol = dlsym(handle, kReadParquetSymbol);
  COLLIMATE_CHECK(symbol != nullptr, "{} has no {}", kParquetLibrary, kReadParquetSymbol);
  return reinterpret_cast<ReadParquetFunction>(symbol);
}

}  // namespace

void read_parquet(const std::string& path, const RowSink& sink) {
  static const ReadParquetFunction reader = load_reader();
  const std::string error = reader(path, sink);
  if (!error.empty()) throw base::InputError(base::expectation(path, "a Parquet file that can be read", error));
}

}  // namespace collimate::text
