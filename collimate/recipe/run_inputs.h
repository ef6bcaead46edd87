#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Returns the models that the plan opens: directory, and whether its weights are read.
std::map<std::string, bool> model_directories(const Plan& plan);

// Reads whole the files that a model is read from and returns them as {path: {"bytes", "crc32c"}}; those of its
// configuration and tokenizer have a "kind". Throws InputError as model::weight_files.
nlohmann::json model_inputs(const std::string& directory, bool weights = true);

// Returns a reward's file in the same form, and no entry where it is missing.
nlohmann::json file_input(const std::string& path);

// Returns what a run reads and no checkpoint holds: files, {path: {"bytes", "crc32c"}}, read whole, and the data, {key:
// {"rows", "fingerprint"}}. The files are those that the plan's weights are read from and, with a "kind" each, the
// models' configurations and tokenizers ("model"), Python rewards without what they import ("reward") and plugins
// ("plugin"). A missing file is left out, as loading names it. Throws InputError as model::weight_files, and for a
// reward with wrong keys.
nlohmann::json run_inputs(const Plan& plan, const RunData& data);

// Writes the inputs as models.json in a run's directory, which keeps them from its beginning.
void keep_inputs(const nlohmann::json& inputs, const std::filesystem::path& run);

// Throws InputError when `inputs` are not those that the run in that directory began with; `anew` says how to begin
// another run. A run without models.json is not compared. A run of an earlier version may have kept weights alone, or
// weights and data; inputs of a kind that it did not keep are not compared.
void check_inputs(const nlohmann::json& inputs, const std::filesystem::path& run, const std::string& anew);

}  // namespace collimate::recipe
