#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// The models that the plan opens: directory, and whether its weights are read.
std::map<std::string, bool> model_directories(const Plan& plan);

// The files that the plan's weights are read from, {path: {"bytes", "crc32c"}}; reads them whole. A missing or broken
// one is left out: loading names it.
nlohmann::json weight_files(const Plan& plan);

// A run's directory keeps them as models.json from its beginning: a frozen model, as GRPO's reference, is in no
// checkpoint. Nothing is written where there are none.
void keep_weight_files(const nlohmann::json& files, const std::filesystem::path& run);

// InputError when `files` are not those that the run in that directory began with. A run without models.json has none.
void check_weight_files(const nlohmann::json& files, const std::filesystem::path& run);

}  // namespace collimate::recipe
