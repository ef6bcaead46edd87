#pragma once

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Lets models of one directory share the weights that none of them changes. A policy with adapters, its reference and
// its value model are then one copy of the weights in a worker, with the adapters and heads of each. Models that are
// trained whole, that begin with random weights or from adapters, or that compute in other ways have weights of their
// own.
void share_bases(Plan& plan);

}  // namespace collimate::recipe
