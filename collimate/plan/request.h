#pragma once

#include <map>
#include <string>

#include "collimate/graph/graph.h"
#include "collimate/plan/cluster.h"
#include "collimate/plan/constants.h"
#include "collimate/plan/workload.h"
#include "collimate/shape/outline.h"

namespace collimate::plan {

// What is to be planned.
struct Request {
  graph::Graph graph;
  std::map<std::string, shape::Outline> models;  // by model of the graph; one without its own has the policy's
  Cluster cluster;                               // of one kind of device
  Workload load;
  Constants constants;
  int64_t micro_batch = 0;  // rows; 0: free
  bool whole = false;       // every rank holds all of its model, as the recipes' modules do: layouts of dp alone
  int keep = 6;             // plans of different forms to report

  const Gpu& gpu() const { return cluster.groups.at(0).gpu; }
};

// InputError for models without a shape, several kinds of device, no rows, loops, or nothing that runs on a device.
void check(const Request& request);
// The shape of a model of the graph: its own, else the policy's. InputError naming the model.
const shape::Outline& outline_of(const Request& request, const std::string& model);

}  // namespace collimate::plan
