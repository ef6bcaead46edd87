#include <dlfcn.h>

#include "collimate/base/error.h"
#include "collimate/host/beside_libraries.h"
#include "collimate/text/constraint/llguidance.h"

namespace collimate::text {
namespace {

template <class Function>
void find(void* handle, const std::string& name, Function& function) {
  void* symbol = dlsym(handle, ("llg_" + name).c_str());
  COLLIMATE_CHECK(symbol != nullptr, "{} has no {}", kLlguidanceLibrary, name);
  function = reinterpret_cast<Function>(symbol);
}

Llguidance load_llguidance() {
  void* handle = host::load_beside_libraries(
      kLlguidanceLibrary, "structured output", "a build with its engine",
      "`pip install llguidance` for the Python that the build uses and configure again, or requests without it");
  Llguidance engine{};
  Llguidance::fields(engine, [&](const char* name, auto& function) { find(handle, name, function); });
  return engine;
}

}  // namespace

const Llguidance& llguidance() {
  static const Llguidance engine = load_llguidance();
  return engine;
}

}  // namespace collimate::text
