#pragma once

#include <vector>

#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// A Subcluster is some of a cluster's devices, on which plans are made as if there were no others.
struct Subcluster {
  Request request;           // as for the whole cluster, but with these devices only
  std::vector<int> devices;  // their numbers in the whole cluster
};

// Returns all devices and, where they are of several kinds, those of every subset of the kinds. A subset of several
// kinds comes once more with the largest power of two of each kind's nodes (of a single node: of its devices). Throws
// InputError for more than 4 kinds.
std::vector<Subcluster> subclusters(const Request& request);

}  // namespace collimate::plan
