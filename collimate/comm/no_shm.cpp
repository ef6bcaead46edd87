#include "collimate/base/error.h"
#include "collimate/comm/group.h"

namespace collimate::comm {

// This build has no shm back end (ranks in other processes of one machine).
std::unique_ptr<Group> shm_group(const GroupPlace& place) {
  throw base::InputError(base::expectation("group " + place.name, "a back end of this build: threads", "shm",
                                           "workers as threads of one process"));
}

}  // namespace collimate::comm
