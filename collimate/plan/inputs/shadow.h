#pragma once

#include <string>
#include <vector>

#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// Returns the models that one function trains and another one only reads.
std::vector<std::string> models_to_shadow(const graph::Graph& graph);
// Makes such a model the shadow of a new one, MODEL_trainer, which takes over its training and its adapters, and sends
// it new weights after every iteration (2312.11819): each then has devices and layouts of its own. Throws InputError
// for any other model, with the nearest one that can be a shadow.
void add_shadow(Request& request, const std::string& model);

}  // namespace collimate::plan
