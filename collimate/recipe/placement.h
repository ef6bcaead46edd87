#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/comm/mesh.h"
#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Returns the placement that the config names, writes out or keeps in a file. It is validated against the plan's graph
// and, where that is set, `devices`: InputError where it does not fit. Changes the plan by give_own_copies and
// keep_frozen_apart.
graph::Placement make_placement(const Config& config, Plan& plan);

// Makes the weights of a module frozen where it shares no device with the trainer of these weights, so that it holds
// neither gradient nor optimizer of them.
void keep_frozen_apart(const graph::Placement& placement, Plan& plan);

// Names each worker by the models that sit there: devices as "device 0: policy, reference", and behind them the host's.
std::vector<std::string> worker_names(const graph::Graph& graph, const graph::Placement& placement);

// Throws InputError, which names the axis, unless each size divides the devices that the sizes ahead of it leave.
void require_divisors(int devices, const std::vector<comm::Axis>& axes);

// Returns the number of parts of which the sums over a layer's inputs are made. It decides their bits
// (model::chunks_of).
int64_t sum_parts(int64_t chunks, int tp);

// Returns the threads of each device's worker.
int threads_of(const Config& config, const graph::Placement& placement);
int threads_of(int64_t threads, const graph::Placement& placement);  // run.threads

}  // namespace collimate::recipe
