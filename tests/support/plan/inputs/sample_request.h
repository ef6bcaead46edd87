#pragma once

#include <string>

#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// Makes, for tests, a request with all models of one size and the default constants. `workload` is flow, rows, and
// lengths of prompts × completions: `ppo,1024,512x512` or `grpo,2048,512xmean:800,0.9,4096`.
inline Request request_for(const std::string& model, const std::string& cluster, const std::string& workload) {
  const size_t flow = workload.find(','), rows = workload.find(',', flow + 1), by = workload.find('x', rows);
  Request request;
  request.graph = flow_of(workload.substr(0, flow));
  request.load.rows = std::stod(workload.substr(flow + 1, rows - flow - 1));
  request.load.prompt = Lengths::parse(workload.substr(rows + 1, by - rows - 1), "prompt");
  request.load.completion = Lengths::parse(workload.substr(by + 1), "completion");
  request.models["policy"] = shape::find_outline(model);
  request.cluster = parse_cluster(cluster);
  request.constants = constants_of("");
  return request;
}

}  // namespace collimate::plan
