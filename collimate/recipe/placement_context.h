#pragma once

#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Checks which functions share the tokens of rows (cp), and how. Throws InputError where a function that generates is
// to share tokens, as it has none to share when it begins, and where ranks that exchange tokens for heads (cp_kind:
// ulysses) cannot each have some of a model's heads.
void check_context(const Config& config, const graph::Placement& placement, const Plan& plan);

}  // namespace collimate::recipe
