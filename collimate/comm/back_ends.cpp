#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/named.h"
#include "collimate/comm/group.h"

// A line for each folder of this one: the function that gives its entry.
// clang-format off
#define COLLIMATE_BACK_ENDS \
  thread_back_end(), \
  shm_back_end()
// clang-format on

namespace collimate::comm {

BackEnd COLLIMATE_BACK_ENDS;  // declares these functions

const std::vector<BackEnd>& back_ends() {
  static const std::vector<BackEnd> all = {COLLIMATE_BACK_ENDS};
  return all;
}

const BackEnd& back_end(const std::string& name) {
  for (const BackEnd& one : back_ends())
    if (one.name == name) return one;
  throw base::InputError(base::expectation(
      "back end of collectives", fmt::format("one of {}", fmt::join(base::names_of(back_ends()), ", ")), name));
}

}  // namespace collimate::comm
