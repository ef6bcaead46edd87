#pragma once

#include <string>

#include "collimate/plan/published/scenario.h"

// Parts of reading a row; not for others.
namespace collimate::plan::published {

// Thrown while a row is read, caught in scenario_of.
struct NotModelled {
  std::string reason;
};

// Batch, prompt and completion lengths.
void read_load(const Row& row, Scenario& scenario);
// Which devices do what.
void read_sharing(const std::string& placement, Scenario& scenario);
// A fourth of the devices each for generation, actor and critic, an eighth each for reference and reward.
void share_in_groups(Scenario& scenario);

}  // namespace collimate::plan::published
