#pragma once

#include <string>
#include <vector>

#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// Models that one function trains and others only read.
std::vector<std::string> models_to_shadow(const graph::Graph& graph);
// Makes such a model the shadow of a new one, MODEL_trainer, which has its training, its adapters and after every
// iteration new weights for it (2312.11819): each then has devices and layouts of its own. InputError with the nearest
// model that can be.
void add_shadow(Request& request, const std::string& model);

}  // namespace collimate::plan
