#include "collimate/host/beside_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <span>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::host {
namespace {

// Returns the loader's handle of the program or shared library that holds this code.
void* own_handle() {
  Dl_info info{};
  link_map* map = nullptr;
  const auto here = reinterpret_cast<const void*>(&beside_libraries);
  const bool found = dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  COLLIMATE_CHECK(found && map != nullptr, "the loader does not know the code that asks it");
  return map;
}

std::vector<std::filesystem::path> library_directories() {
  void* handle = own_handle();
  Dl_serinfo size{};
  COLLIMATE_CHECK(dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0, "dlinfo: {}", dlerror());
  std::vector<std::byte> memory(size.dls_size);
  auto* list = reinterpret_cast<Dl_serinfo*>(memory.data());
  *list = size;
  COLLIMATE_CHECK(dlinfo(handle, RTLD_DI_SERINFO, list) == 0, "dlinfo: {}", dlerror());
  std::vector<std::filesystem::path> directories;
  for (const Dl_serpath& path : std::span(&list->dls_serpath[0], list->dls_cnt))
    directories.emplace_back(path.dls_name);
  return directories;
}

}  // namespace

std::filesystem::path beside_libraries(const std::filesystem::path& name) {
  std::error_code ignored;  // a directory that is absent or may not be read has no such file
  for (const std::filesystem::path& directory : library_directories())
    if (std::filesystem::exists(directory / name, ignored)) return std::filesystem::absolute(directory / name);
  return {};
}

void* load_beside_libraries(const std::string& library, const std::string& what, const std::string& expected,
                            const std::string& remedy) {
  const std::filesystem::path path = beside_libraries(library);
  if (!path.empty())
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  throw base::InputError(base::expectation(what, expected, path.empty() ? "none" : dlerror(), remedy));
}

}  // namespace collimate::host
