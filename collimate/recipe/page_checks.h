#pragma once

#include <string>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Checks a page's graph by graph::validate, and beside it that the plan names a node and a model that are there, that a
// node reads every value with columns of its own, that the iteration's samples have rewards and say how completions
// ended, and that every input is read. The samples themselves need no reader. Throws InputError.
void check_page(const std::string& recipe, const Plan& plan);

}  // namespace collimate::recipe
