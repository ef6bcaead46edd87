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
  find(handle, "constraint_init_set_defaults", engine.constraint_init_set_defaults);
  find(handle, "new_tokenizer_v2", engine.new_tokenizer_v2);
  find(handle, "free_tokenizer", engine.free_tokenizer);
  find(handle, "new_matcher", engine.new_matcher);
  find(handle, "clone_matcher", engine.clone_matcher);
  find(handle, "free_matcher", engine.free_matcher);
  find(handle, "matcher_get_error", engine.matcher_get_error);
  find(handle, "matcher_get_mask_byte_size", engine.matcher_get_mask_byte_size);
  find(handle, "matcher_compute_mask_into", engine.matcher_compute_mask_into);
  find(handle, "matcher_validate_tokens", engine.matcher_validate_tokens);
  find(handle, "matcher_consume_tokens", engine.matcher_consume_tokens);
  find(handle, "matcher_rollback", engine.matcher_rollback);
  return engine;
}

}  // namespace

const Llguidance& llguidance() {
  static const Llguidance engine = load_llguidance();
  return engine;
}

}  // namespace collimate::text
