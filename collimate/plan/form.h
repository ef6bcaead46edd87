#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"

namespace collimate::plan {

// A Seat says where a model sits and what it does there, as far as the name of a placement's form depends on it.
struct Seat {
  std::string weights;  // name of the model that trains them
  bool trains = false, generates = false;
  std::set<int> places;  // devices, or cells
};
// Returns the seat of a model of the graph, with no places yet.
Seat seat_of(const graph::Graph& graph, const std::string& model);

// Returns the form of a placement on `places` places, the first of these that holds: "flattening", all models are on
// all places; "interleaving", all models that train or generate are; "nested", models overlap in part of their places;
// "standalone", only models of the same weights share places; "separation", nothing trains where something generates;
// else "split".
std::string form_of(const std::vector<Seat>& seats, int places);
// Returns whether a placement has this form: the one that form_of() names or, for "separation", any form in which
// generation is apart from training, as it may be in a standalone placement.
bool has_form(const std::vector<Seat>& seats, int places, const std::string& form);
// Returns the names of all forms.
const std::vector<std::string>& form_names();
// Returns the form of a placement, with the devices that it uses as places.
std::string form_of(const graph::Graph& graph, const graph::Placement& placement);

}  // namespace collimate::plan
