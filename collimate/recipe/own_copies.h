#pragma once

#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// A device has a trainer's weights once, also for the models that read them there. One that reads other pieces than the
// trainer has on one of their devices (another tp, pp or ep, or other neighbours in these) gets weights of its own,
// named after it, which the weight link fills. The others read them in place.
void give_own_copies(const graph::Placement& placement, Plan& plan);

}  // namespace collimate::recipe
