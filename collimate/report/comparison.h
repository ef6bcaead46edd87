#pragma once

#include <string>
#include <vector>

#include "collimate/report/run_data.h"

namespace collimate::report {

// A Difference is a key of the configs that is not the same in all runs, with its value in each; "–" where a run has
// no such key.
struct Difference {
  std::string key;  // "train.learning_rate"
  std::vector<std::string> values;
};
std::vector<Difference> config_differences(const std::vector<RunData>& runs);

// Names each run by its directory, or by the shortest end of its path that tells all runs apart. Throws InputError
// where two runs are one directory.
void name_apart(std::vector<RunData>& runs);

}  // namespace collimate::report
