#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/config.h"

namespace collimate::cli {

// How a check is printed. kShort: lines for a reader. kAll: those lines as comments, then all keys of the resolved
// config in YAML. kJson: one JSON document.
enum class CheckForm { kShort, kAll, kJson };

// Prints what each key of a ChatLearn YAML is translated to. Prints nothing for any other file, or with kJson.
void show_translation(const std::string& path, const std::vector<std::string>& sets, CheckForm form);

// Prints what the config would train: arithmetic, data shapes and masks, then warnings. If it would train wrong, prints
// the reasons to stderr after that. Returns the exit code: 2 if it would train wrong, else 0.
int show_check(const recipe::Config& config, CheckForm form);

}  // namespace collimate::cli
