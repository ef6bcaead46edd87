#pragma once

#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/plan/cost/job.h"
#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// A Function is one call of a graph's iteration as the planner sees it.
struct Function {
  int node = 0;    // of the graph
  int model = -1;  // among Functions::models; -1: it runs on the host
  Work work = Work::kScore;
  bool language_head = true;
  int64_t lora_rank = 0;  // of the adapters that its model, or the one whose weights it gets, trains; 0: none
  bool passes = false;    // gives new weights to another model, or takes them
  bool frozen = false;    // nothing trains its model, which may lie on the host between uses
  // Index of the function whose weights, or whose frozen weights beside adapters, this one reads in place where both
  // have the same devices and cut; -1: none.
  int base = -1;
  double host_seconds = 0;     // of an iteration's rows, on the host
  bool streams = false;        // gives each row out when it is done
  bool by_rows = false;        // works on the rows that are there while its producers go on
  double call_seconds = 0;     // part of its seconds: each such call's, whatever its rows
  std::vector<int> producers;  // functions that end before it begins
};

// A Transfer is weights that go from the model that trains to the one that uses them.
struct Transfer {
  int source = 0, destination = 0;  // indices of models
  int trainer = 0;                  // the function that completes the source's training
  std::vector<int> readers;         // functions of the destination
};

// Functions are those of an iteration in the order of graph::topological_order, which is that of graph::Schedule.
// Throws InputError as check() does, and for a graph of host functions only.
struct Functions {
  explicit Functions(const Request& request);

  std::vector<std::string> models;  // on devices
  std::vector<Function> list;
  std::vector<Transfer> transfers;

  size_t size() const { return list.size(); }
  const Function& at(size_t index) const { return list[index]; }
  const std::string& model_of(size_t index) const { return base::at(models, list[index].model); }

 private:
  void add(const Request& request, int node, const std::vector<int>& function_of_node);
  void add_transfers(const graph::Graph& graph);
  void set_bases(const Request& request);
};

// Returns a function's job on so many devices of these kinds.
Job job_of(const Request& request, const Functions& functions, size_t index, const Kinds& kinds, int devices);

}  // namespace collimate::plan
