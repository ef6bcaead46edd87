#pragma once

#include <string>

#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// For tests: the flow of a workload's algorithm, with all models of one size and the default constants.
inline Request request_for(const std::string& model, const std::string& cluster, const std::string& workload) {
  Request request;
  request.load = parse_workload(workload);
  request.graph = flow_of(request.load.algorithm);
  request.models["policy"] = shape::find_outline(model);
  request.cluster = parse_cluster(cluster);
  request.constants = constants_of("");
  return request;
}

}  // namespace collimate::plan
