#include <cstdlib>
#include <vector>

#include "collimate/base/fault.h"

namespace collimate::base {

std::string test_hook_warning() {
  std::vector<const char*> names = {"COLLIMATE_TEST_KILL_AT", "COLLIMATE_TEST_NUDGE_AT", "COLLIMATE_TEST_DISK_BYTES",
                                    "COLLIMATE_TEST_REPARSE"};
  if (!has_test_hooks()) names.push_back("COLLIMATE_TEST_DEVICE");  // some programs with the hooks have the device
  std::string set;
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text && *text) set += (set.empty() ? "" : ", ") + std::string(name);
  }
  if (set.empty()) return "";
  return "warning: " + set +
         (has_test_hooks() ? ": set, and this program, which is for tests, does what it says"
                           : ": set, and changes nothing: this program has no test hooks");
}

}  // namespace collimate::base
