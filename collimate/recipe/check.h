#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Holds what is known of a config before anything runs.
struct Findings {
  std::string config;              // resolved, as YAML
  std::vector<std::string> lines;  // for a person: arithmetic, data shapes, an example of each data set with its mask
  std::vector<std::string> problems;  // why it would train wrong, each in the form of base/error.h
  std::vector<std::string> refused;   // problems for which train begins no run; check() adds them to `problems`
  nlohmann::ordered_json facts;       // the numbers of `lines`, for programs
};

// Finds what can be told from the plan, the placement and the data, which train has made by then. Opens no weights and
// calls no reward.
Findings inspect(const Config& config, const Plan& plan, const graph::Placement& placement, const RunData& data);

// Says whether check() looks at weight files. kNotYet is for models that are still to be made, of which only shapes and
// tokenizers are known.
enum class WeightFiles { kRead, kNotYet };

// Finds everything that shows before a run: what inspect() finds, problems of weight files, and problems of rewards.
// The rewards are built (Python ones import their file) and tried on a few completions; rules are also asked about the
// first kCheckedRows rows. Throws nothing for wrong input, which becomes a problem among the others.
Findings check(Config config, WeightFiles weights = WeightFiles::kRead);

// Returns the document of `check --json`: config, config_hash, each key of `facts`, notes and problems.
nlohmann::ordered_json to_json(const Config& config, const Findings& found);

// Throws InputError with all problems, one a line. Does nothing when there are none.
void refuse(const std::vector<std::string>& problems);

}  // namespace collimate::recipe
