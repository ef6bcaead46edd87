#include <cstdlib>

#include "collimate/base/fault.h"

namespace collimate::base {

std::string test_hook_warning() {
  const auto is_set = [](const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr && *text != '\0';
  };
  std::string set;
  for (const char* name :
       {"COLLIMATE_TEST_KILL_AT", "COLLIMATE_TEST_NUDGE_AT", "COLLIMATE_TEST_DISK_BYTES", "COLLIMATE_TEST_REPARSE"})
    if (is_set(name)) set += (set.empty() ? "" : ", ") + std::string(name);
  if (is_set("COLLIMATE_TEST_DEVICE") && !has_test_hooks())  // of those with the hooks, some have the device
    set += (set.empty() ? "" : ", ") + std::string("COLLIMATE_TEST_DEVICE");
  if (set.empty()) return "";
  return "warning: " + set +
         (has_test_hooks() ? ": set, and this program, which is for tests, does what it says"
                           : ": set, and changes nothing: this program has no test hooks");
}

}  // namespace collimate::base
