#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/config.h"

namespace collimate::cli {

// How it is shown: for a reader; that, as comments, above all keys of the resolved config in YAML; one JSON document.
enum class CheckForm { kShort, kAll, kJson };

// Prints what each key of a ChatLearn YAML comes to; nothing of another file, or in JSON.
void show_translation(const std::string& path, const std::vector<std::string>& sets, CheckForm form);

// Prints what the config comes to: arithmetic, data
// shapes and masks, warnings last. Where it would train wrong the reasons come first, on stderr. The exit code: 2 then,
// else 0.
int show_check(const recipe::Config& config, CheckForm form);

}  // namespace collimate::cli
