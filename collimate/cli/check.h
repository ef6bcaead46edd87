#pragma once

#include <string>

#include "collimate/recipe/config.h"

namespace collimate::cli {

// How it is shown: for a reader; that, as comments, above all keys of the resolved config in YAML; one JSON document.
enum class CheckForm { kShort, kAll, kJson };

// Prints what the config of the file at `path` comes to: of a ChatLearn YAML what each key becomes, arithmetic, data
// shapes and masks, warnings last. Where it would train wrong the reasons come first, on stderr. The exit code: 2 then,
// else 0.
int show_check(const std::string& path, const recipe::Config& config, CheckForm form);

}  // namespace collimate::cli
