#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Builds the rewards of the plan's models, calls each on a few completions of the first row and shows what they get,
// and asks those that are functions of one sample (rules, C++) about each row of `data` as if the ground truth had been
// the completion. A row on which such a reward fails is a problem when on_error stops the run, or when all rows fail;
// otherwise a line. Without data the rewards are built alone.
void check_rewards(const Plan& plan, const RunData& data, std::vector<std::string>& lines,
                   std::vector<std::string>& problems);

}  // namespace collimate::recipe
