#pragma once

#include "collimate/recipe/config.h"

namespace collimate::cli {

// How it is shown: for a reader; that, as comments, above all keys of the resolved config in YAML; one JSON document.
enum class CheckForm { kShort, kAll, kJson };

// Prints what the config comes to: arithmetic, data shapes and masks, warnings last. InputError with the reasons if it
// would train wrong.
void show_check(const recipe::Config& config, CheckForm form);

}  // namespace collimate::cli
