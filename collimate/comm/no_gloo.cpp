#include "collimate/base/error.h"
#include "collimate/comm/group.h"

namespace collimate::comm {

// This build has no gloo back end (ranks on several machines).
std::unique_ptr<Group> gloo_group(const GroupPlace& place) {
  throw base::InputError(base::expectation("group " + place.name, "a back end of this build: threads", "gloo",
                                           "workers as threads of one process"));
}

}  // namespace collimate::comm
