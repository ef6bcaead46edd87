#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// A config comes to these findings before anything runs.
struct Findings {
  std::string config;              // resolved, as YAML
  std::vector<std::string> lines;  // for a person: arithmetic, data shapes, an example of each data set with its mask
  std::vector<std::string> problems;  // why it would train wrong, each in the form of base/error.h
  std::vector<std::string> refused;   // those of them for which train begins no run; after check() `problems` has them
  nlohmann::ordered_json facts;       // the numbers of `lines`, for programs
};

// Asks the parts that train has read by then. Opens no weights and no reward.
Findings inspect(const Config& config, const Plan& plan, const graph::Placement& placement, const RunData& data);

// kNotYet: of models that are still to be made there are shapes and tokenizers alone.
enum class WeightFiles { kRead, kNotYet };

// Everything that shows before a run: inspect() and beyond it the files of weights, and the rewards, which are built
// (Python ones import their file) and, where they are rules, asked about every row. Throws for no wrong input: that is
// a problem among the others.
Findings check(Config config, WeightFiles weights = WeightFiles::kRead);

// The document of `check --json`: config, config_hash, facts, notes, problems.
nlohmann::ordered_json to_json(const Config& config, const Findings& found);

// InputError with all problems, one a line; nothing when there are none.
void refuse(const std::vector<std::string>& problems);

}  // namespace collimate::recipe
