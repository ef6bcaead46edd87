#pragma once

#include <string>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Asks what graph::validate asks of a page's graph, and beside it: the plan names a node and a model that are there,
// every value with columns of its own is read by a node or is the iteration's samples, which have rewards and say how
// completions ended, and every input is read. InputError.
void check_page(const std::string& recipe, const Plan& plan);

}  // namespace collimate::recipe
