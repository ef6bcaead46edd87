#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/text/parquet/parquet.h"

namespace collimate::text {
namespace {

// Directory of the program or shared library that holds this code.
std::filesystem::path own_directory() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<const void*>(&read_parquet), &info) != 0 && info.dli_fname != nullptr;
  std::error_code error;
  if (found && std::filesystem::path(info.dli_fname).extension() == ".so") {
    return std::filesystem::absolute(info.dli_fname, error).parent_path();
  }
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

// The library stands beside the program, or in ../lib/collimate of an installation.
void* open_library() {
  std::string reasons;
  for (const char* place : {"", "../lib/collimate"}) {
    const std::filesystem::path path = own_directory() / place / kParquetLibrary;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reasons += fmt::format(" ({})", dlerror());
  }
  throw base::InputError(base::expectation(
      "parquet", "a build with the Parquet reader", "none" + reasons,
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
