#include "collimate/host/shared_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "collimate/base/error.h"

namespace collimate::host {
namespace {

// Makes the symbols of the library that holds this code visible. A program's symbols are visible anyway; a program
// cannot be opened, and need not be.
void show_own_symbols() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&show_own_symbols), &info) == 0 || info.dli_fname == nullptr) return;
  if (dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) == nullptr) dlerror();  // forgets the error
}

}  // namespace

void* load_library(const std::string& path) {
  show_own_symbols();
  const std::string whole = std::filesystem::absolute(path).string();  // a name without / is searched elsewhere
  void* library = dlopen(whole.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw base::RunError(dlerror());
  return library;
}

void* library_symbol(void* library, const char* name) { return dlsym(library, name); }

}  // namespace collimate::host
