#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collimate/graph/graph.h"

namespace collimate::plan {

// A stretch of a node's work on one worker, as a run's trace has it.
struct NodeSpan {
  int node = 0;  // of the graph
  int64_t iteration = 0;
  double begin_seconds = 0, end_seconds = 0;
};

// Returns for each node its median seconds in the iterations after the first, where all models share all devices. A
// node on devices takes the time from the end of what they did before it, or of a host function that it waits for, to
// its own end on the last of them: with the driver's work between, so that an iteration is the sum of its nodes. A host
// function takes the time from the end of the last node that it reads to its own end. Nodes that did not run are left
// out. Empty for fewer than two iterations.
std::map<int, double> node_seconds(const graph::Graph& graph, const std::vector<NodeSpan>& spans);

// Writes what --prompt and --completion read: a mean in tokens, from 1 on, as whole lengths.
std::string mean_text(double mean);
// The text by which Lengths::parse reads how long an iteration's rows were: `longest` of a share of them (at least that
// of one row, of 128 at most), the others of one length that leaves the mean.
std::string lengths_text(double mean, double longest, double share_of_longest, double rows);

}  // namespace collimate::plan
