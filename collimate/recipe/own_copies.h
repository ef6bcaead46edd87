#pragma once

#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Gives weights of their own to models that cannot read a trainer's. A device holds a trainer's weights once, and
// models linked to it read them in place. A model that reads other pieces than the trainer has on a device of both
// (another tp, pp or ep, or other neighbours in these) gets weights of its own, named after it, which the weight link
// fills.
void give_own_copies(const graph::Placement& placement, Plan& plan);

}  // namespace collimate::recipe
