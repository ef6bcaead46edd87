#include <dlfcn.h>

#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/host/beside_libraries.h"
#include "collimate/text/parquet/parquet.h"

namespace collimate::text {
namespace {

void* open_library() {
  const std::filesystem::path path = host::beside_libraries(kParquetLibrary);
  if (!path.empty())
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  throw base::InputError(base::expectation(
      "parquet", "a build with the Parquet reader", path.empty() ? "none" : dlerror(),
      "`pip install pyarrow` for the Python that the build uses and configure again, or convert the file to JSONL"));
}

ReadParquetFunction load_reader() {
  void* handle = open_library();
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
