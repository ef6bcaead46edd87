#pragma once

#include <vector>

#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// Some of a cluster's devices, on which plans are made as if there were no others.
struct Subcluster {
  Request request;           // the whole one's, with a cluster of these devices
  std::vector<int> devices;  // their numbers in the whole one
};

// All devices; where they are of several kinds, also those of every part of the kinds. What has several kinds comes
// once more with a power of two of each kind's nodes (of one node: of its devices). InputError beyond 4 kinds.
std::vector<Subcluster> subclusters(const Request& request);

}  // namespace collimate::plan
