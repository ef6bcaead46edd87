#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/comm/mesh.h"
#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// The placement that the config names, writes out or keeps in a file, validated against the plan's graph and `devices`,
// if that is set, with keep_frozen_apart.
graph::Placement make_placement(const Config& config, Plan& plan);

// A module of the plan that shares no device with the trainer of its weights becomes one of frozen weights: it holds
// neither gradient nor optimizer of them.
void keep_frozen_apart(const graph::Placement& placement, Plan& plan);

// Names each worker by the models that sit there, devices as "device 0: policy, reference", then the host's.
std::vector<std::string> worker_names(const graph::Graph& graph, const graph::Placement& placement);

// Checks that each of the sizes divides what those ahead of it leave of the devices: InputError with its axis.
void require_divisors(int devices, const std::vector<comm::Axis>& axes);

// Gives the parts of which the sums over a layer's inputs are made, which decide their bits (model::chunks_of).
int64_t sum_parts(int64_t chunks, int tp);

// Threads of each device's worker.
int threads_of(const Config& config, const graph::Placement& placement);
int threads_of(int64_t threads, const graph::Placement& placement);  // run.threads

}  // namespace collimate::recipe
