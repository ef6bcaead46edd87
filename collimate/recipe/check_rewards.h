#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// A run's trial asks rules about so many rows of a data set, `check` about these.
constexpr int64_t kTriedRows = 100;
constexpr int64_t kCheckedRows = 20000;

struct RewardFindings {
  std::vector<std::string> lines, problems;
};

// Builds the rewards of the plan's models, calls each on a few completions of the first row and shows what they get,
// and asks those that are functions of one sample (rules, C++) about the first `rows` rows of `data` as if the ground
// truth had been the completion. A row on which such a reward fails is a problem when on_error stops the run, or when
// all rows fail; otherwise a line. A problem names the data's columns. Without data the rewards are built alone.
RewardFindings check_rewards(const Plan& plan, const RunData& data, int64_t rows);

}  // namespace collimate::recipe
