#pragma once

#include "collimate/recipe/config.h"

namespace collimate::cli {

// Prints what the config comes to: the resolved config and, as its comments, arithmetic, data shapes and masks; or all
// of it as one JSON document. InputError with the reasons if it would train wrong.
void show_check(const recipe::Config& config, bool json);

}  // namespace collimate::cli
