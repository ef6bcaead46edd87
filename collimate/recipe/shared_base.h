#pragma once

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Has models of one directory share what none of them changes: a policy with adapters, its reference and its value
// model are one copy of the weights in a worker, with the adapters and heads of each. Models that are trained whole,
// begin with random weights or from adapters, and those that compute in other ways, have their own.
void share_bases(Plan& plan);

}  // namespace collimate::recipe
