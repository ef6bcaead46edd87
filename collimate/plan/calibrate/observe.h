#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collimate/graph/graph.h"

namespace collimate::plan {

// A NodeSpan is a stretch of a node's work on one worker, as a run's trace has it.
struct NodeSpan {
  int node = 0;  // of the graph
  int64_t iteration = 0;
  double begin_seconds = 0, end_seconds = 0;
};

// Returns for each node its median seconds in the iterations after the first, for runs in which all models share all
// devices. The time of a node on devices begins when they have ended what they did before it, or when a host function
// ends for which it waits, and ends with the last of its own work. The driver's work between nodes is part of it, so
// that an iteration is the sum of its nodes. The time of a host function goes from the end of the last node that it
// reads to its own end. Nodes that did not run are left out. The result is empty for fewer than two iterations.
std::map<int, double> node_seconds(const graph::Graph& graph, const std::vector<NodeSpan>& spans);

// Writes a mean number of tokens, from 1 on, as --prompt and --completion read it: as one whole length, or as a
// histogram of the two whole lengths around it.
std::string mean_text(double mean);
// Writes how long an iteration's rows were, as Lengths::parse reads it: a share of the rows (at least one row of
// `rows`, of which 128 count at most) has the length `longest`, and the others have the one length that leaves the
// mean.
std::string lengths_text(double mean, double longest, double share_of_longest, double rows);

}  // namespace collimate::plan
