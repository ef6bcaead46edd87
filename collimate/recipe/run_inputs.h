#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// The models that the plan opens: directory, and whether its weights are read.
std::map<std::string, bool> model_directories(const Plan& plan);

// The files that a model is read from, {path: {"bytes", "crc32c"}}, read whole; those of its configuration and
// tokenizer have a "kind". InputError as model::weight_files.
nlohmann::json model_inputs(const std::string& directory, bool weights = true);

// A reward's file, in the same form; nothing where it is missing.
nlohmann::json file_input(const std::string& path);

// A run reads these and no checkpoint holds them: files, {path: {"bytes", "crc32c"}}, read whole, and the data, {key:
// {"rows", "fingerprint"}}. The files are those that the plan's weights are read from and, with a "kind" each, the
// models' configurations and tokenizers ("model"), and Python rewards without what they import ("reward"), and plugins
// ("plugin"). A missing file is left out: loading names it. InputError as model::weight_files, and for a reward with
// wrong keys.
nlohmann::json run_inputs(const Plan& plan, const RunData& data);

// A run's directory keeps them as models.json from its beginning.
void keep_inputs(const nlohmann::json& inputs, const std::filesystem::path& run);

// InputError when `inputs` are not those that the run in that directory began with; `anew` is how to begin another. A
// run without models.json has none; one of an earlier version may have those of weights alone: what it kept no kind of
// is not compared.
void check_inputs(const nlohmann::json& inputs, const std::filesystem::path& run, const std::string& anew);

}  // namespace collimate::recipe
