#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// A model where it sits, as far as the name of a placement's form asks.
struct Seat {
  std::string weights;  // the model that trains them
  bool trains = false, generates = false;
  std::set<int> places;  // devices, or cells
};

// "flattening": all models on all devices; "interleaving": models that train or generate on all, others elsewhere;
// "nested": groups that overlap otherwise; "standalone": every model's weights on devices of their own; "separation":
// generation apart from training; else "split".
std::string form_of(const std::vector<Seat>& seats, int places);
std::string form_of(const graph::Graph& graph, const graph::Placement& placement);
std::string form_of(const graph::Graph& graph, const Functions& functions, const Slots& slots);

}  // namespace collimate::plan
