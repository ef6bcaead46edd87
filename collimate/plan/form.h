#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"

namespace collimate::plan {

// A model where it sits, as far as the name of a placement's form asks.
struct Seat {
  std::string weights;  // the model that trains them
  bool trains = false, generates = false;
  std::set<int> places;  // devices, or cells
};
// Makes the seat of a model of the graph, in no place yet.
Seat seat_of(const graph::Graph& graph, const std::string& model);

// "flattening": all models on all places, which are so many; "interleaving": models that train or generate on all,
// others elsewhere; "nested": groups that overlap otherwise; "standalone": every model's weights on devices of their
// own; "separation": generation apart from training; else "split".
std::string form_of(const std::vector<Seat>& seats, int places);
// Whether a placement may be called so: by its name, or a separation that has a narrower name as well, as a standalone
// one whose generation is apart from training.
bool has_form(const std::vector<Seat>& seats, int places, const std::string& form);
// Returns the names of all forms.
const std::vector<std::string>& form_names();
// Names the form of a placement on the devices that it uses.
std::string form_of(const graph::Graph& graph, const graph::Placement& placement);

}  // namespace collimate::plan
