#include "collimate/base/error.h"
#include "collimate/comm/group.h"

namespace collimate::comm {

// This build has no nccl back end (ranks on GPUs).
std::unique_ptr<Group> nccl_group(const GroupPlace& place) {
  throw base::InputError(base::expectation("group " + place.name, "a back end of this build: threads", "nccl",
                                           "workers as threads of one process"));
}

}  // namespace collimate::comm
